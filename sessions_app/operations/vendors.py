"""What can be said of the models before anybody asks one."""

from sessions_app.providers import catalog, registry


def require(model: str) -> None:
    """Raises a ModelError that says why this model could not be asked."""
    registry.resolve(model)


def servers() -> dict[str, str]:
    """The base URL of every vendor that is configured."""
    found = {vendor.name: catalog.access(vendor) for vendor in catalog.VENDORS.values()}
    return {name: access.base_url for name, access in found.items() if access.is_configured}
