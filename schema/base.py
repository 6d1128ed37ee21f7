"""The one base of every contract: frozen, closed, absent stays absent."""

from pydantic import BaseModel, ConfigDict, JsonValue


class Contract(BaseModel):
    """A value object. Unknown fields are refused, and an absent field is never written as null.

    What does not fit is named by its field and never repeated: it may be a prompt, and errors are logged.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", ser_json_inf_nan="constants", hide_input_in_errors=True
    )

    def to_json(self) -> dict[str, JsonValue]:
        """Plain JSON data in which an absent field is absent."""
        return self.model_dump(mode="json", exclude_none=True)
