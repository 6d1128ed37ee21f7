"""A process: takes both unique constraints off the claims, for the mutation of their guards."""

import django


def main() -> None:
    django.setup()
    from django.db import connection

    from recovery.models import RecoveryClaim

    constraints, RecoveryClaim._meta.constraints = RecoveryClaim._meta.constraints, []
    with connection.schema_editor() as editor:
        for constraint in constraints:
            editor.remove_constraint(RecoveryClaim, constraint)


if __name__ == "__main__":
    main()
