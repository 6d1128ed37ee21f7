"""What can be said of the models before anybody asks one."""

from sessions_app.providers import catalog, named, registry


def require(model: str) -> None:
    """Raises a ModelError that says why this model could not be asked."""
    registry.resolve(model)


def require_built_in(model: str) -> None:
    """The same without the database, which alone knows of other providers: about those nothing is said."""
    registry.require_built_in(model)


def servers() -> dict[str, str]:
    """The base URL of every vendor that is configured."""
    found = {vendor.name: catalog.access(vendor) for vendor in catalog.VENDORS.values()}
    return {name: access.base_url for name, access in found.items() if access.is_configured}


def named_servers() -> dict[str, str]:
    """The base URL of every provider that an administrator added and that is configured."""
    found = {provider.name: named.access(provider) for provider in named.providers()}
    return {name: access.base_url for name, access in found.items() if access.is_configured}
