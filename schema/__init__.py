"""Pure contracts: what is stored, sent and shown. No framework, no I/O, no clock."""
