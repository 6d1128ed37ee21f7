"""Settings, composed from the environment. What each variable means is in docs and in config.env."""

import os
import sys
import warnings
from datetime import timedelta
from pathlib import Path

from config import databases, env, logs, paths

BASE_DIR = Path(__file__).resolve().parent.parent

try:
    _env = env.read(os.environ, root=BASE_DIR)
except env.BadVariable:
    for bad in env.problems(os.environ, root=BASE_DIR):
        print(f"holdfast: {bad}", file=sys.stderr)
    raise SystemExit(2) from None

# --- What the product itself reads -----------------------------------------------------------------

HOLDFAST_ROLE = _env.role or env.serving_role(sys.argv)
HOLDFAST_DEFAULT_MODEL = _env.default_model
HOLDFAST_RECOVERY_POLICY = _env.recovery_policy
HOLDFAST_RECOVERY_BUDGET = _env.recovery_budget
HOLDFAST_HEARTBEAT_SECONDS = _env.heartbeat_seconds
HOLDFAST_LEASE_SECONDS = _env.lease_seconds
HOLDFAST_SWEEP_SECONDS = _env.sweep_seconds
HOLDFAST_RUN_DIR = _env.run_dir
HOLDFAST_CHECKPOINT_SECONDS = _env.checkpoint_seconds
HOLDFAST_GRACE_SECONDS = _env.grace_seconds
HOLDFAST_DRAINS_PER_WORKER = _env.drains_per_worker
HOLDFAST_STARTUP_RECOVERY = _env.startup_recovery
HOLDFAST_TOOLS = _env.tools
HOLDFAST_WEBHOOK_URLS = _env.webhook_urls
HOLDFAST_MCP_COMMANDS = _env.mcp_commands
HOLDFAST_METRICS_TOKEN = _env.metrics_token
HOLDFAST_USER_RATE = _env.user_rate
HOLDFAST_TOKEN_RATE = _env.token_rate
HOLDFAST_PROXIES = _env.proxies
HOLDFAST_COORDINATOR = "sessions_app.execution.coordinator"
OPENAI_API_KEY = _env.openai_api_key
OPENAI_BASE_URL = _env.openai_base_url
OPENAI_RESPONSES_BACKGROUND = _env.openai_responses_background
ANTHROPIC_API_KEY = _env.anthropic_api_key
ANTHROPIC_BASE_URL = _env.anthropic_base_url
HOLDFAST_LOCAL_MODEL = _env.local_model
HOLDFAST_LOCAL_PORT = _env.local_port
HOLDFAST_LOCAL_KEY = _env.local_key

# --- Files -------------------------------------------------------------------------------------------

_only_loopback = set(_env.allowed_hosts) <= set(env.LOOPBACK_HOSTS)
try:
    paths.make_directory(HOLDFAST_RUN_DIR)
    if isinstance(_env.database, env.SQLite):
        paths.make_directory(_env.database.path.parent)
    if _env.secret_key is None and not _only_loopback:
        raise OSError(
            "SECRET_KEY is required when ALLOWED_HOSTS names more than this machine: "
            f"set it to at least {env.SHORTEST_SECRET_KEY} random characters, the same on every host"
        )
    if _env.secret_key is None:
        paths.make_directory(BASE_DIR / "var")
    SECRET_KEY = _env.secret_key or paths.secret_key(BASE_DIR / "var" / "secret_key")
    _layer_socket = paths.layer_socket(HOLDFAST_RUN_DIR)
except OSError as refused:
    print(f"holdfast: {refused}", file=sys.stderr)
    raise SystemExit(2) from None

# --- Django ------------------------------------------------------------------------------------------

DEBUG = _env.debug
ALLOWED_HOSTS = list(_env.allowed_hosts)

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "rest_framework",
    "django_q",
    "axes",
    "sessions_app",
    "recovery",
    "config",
]

MIDDLEWARE = [
    f"config.middleware.{name}"
    for name in (
        *("Security", "StaticFiles", "Sessions", "Common"),
        *("Csrf", "Authentication", "Messages", "XFrameOptions"),
    )
]
# The API serves no files, keeps no messages, signs nobody in, and sees to CSRF itself: by authentication.
_NOT_FOR_THE_API = ("StaticFiles", "Csrf", "Messages")
HOLDFAST_API_MIDDLEWARE = [name for name in MIDDLEWARE if not name.endswith(_NOT_FOR_THE_API)]
MIDDLEWARE.append("axes.middleware.AxesMiddleware")

ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DATABASES = {"default": databases.connection(_env.database, role=HOLDFAST_ROLE)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
# A name that is tried too often from one address rests for a while. The count is in the database, for every process.
AXES_FAILURE_LIMIT = _env.sign_in_failures
AXES_COOLOFF_TIME = timedelta(seconds=_env.sign_in_pause_seconds)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_LOCKOUT_CALLABLE = "sessions_app.web.account.too_many_failures"
AXES_RESET_ON_SUCCESS = True
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_CLIENT_IP_CALLABLE = "sessions_app.web.account.address_of"
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "static/"
# Static files are served from where they lie: one command starts everything, and none is to be forgotten.
WHITENOISE_USE_FINDERS = True

LOGGING = logs.logging_config(_env.log_format)

# --- Cache ---------------------------------------------------------------------------------------------

# It counts requests, nothing else. Without Redis there is one web process, whose memory will do.
CACHES = {
    "default": (
        {
            "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
            "OPTIONS": {"MAX_ENTRIES": 100_000},
        }
        if _env.redis_url is None
        else {
            "BACKEND": "django.core.cache.backends.redis.RedisCache",
            "LOCATION": _env.redis_url,
            "KEY_PREFIX": "holdfast",
            "OPTIONS": {"socket_timeout": 1, "socket_connect_timeout": 1},
        }
    )
}

# --- Security ----------------------------------------------------------------------------------------

CSRF_TRUSTED_ORIGINS = list(_env.csrf_trusted_origins)
_https_only = bool(CSRF_TRUSTED_ORIGINS) and all(
    origin.startswith("https://") for origin in CSRF_TRUSTED_ORIGINS
)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _https_only
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
# Browsers heed it only when they came over HTTPS.
SECURE_HSTS_SECONDS = _env.hsts_seconds if _https_only else 0
# Without a proxy that says how somebody came, everybody would be sent on for ever.
SECURE_SSL_REDIRECT = _https_only and HOLDFAST_PROXIES > 0
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|metrics)$"]
# What the other names of the domain do, and whether it is on the browsers' lists, is not ours to say.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
# Django looks for its middleware by name and not for what extends it; config.checks looks at the classes.
SILENCED_SYSTEM_CHECKS += ["security.W001", "security.W002", "security.W003"]

# --- The queue ---------------------------------------------------------------------------------------

# django-q2 warns when no timeout is set. One would end a worker process with every drain in it.
warnings.filterwarnings("ignore", message="Retry and timeout are misconfigured", category=UserWarning)

Q_CLUSTER = {
    "name": "holdfast",
    "orm": "default",
    "broker_class": "sessions_app.execution.broker.SafeOrmBroker",
    "workers": 2,
    "timeout": None,
    "retry": 60,
    # A hand-over that failed stays in the queue and is delivered again, for ever.
    "ack_failures": False,
    "max_attempts": 0,
    # A worker that recycles would stay until its last drain ended, and not be replaced before.
    "recycle": 0,
    "save_limit": -1,
    "poll": 0.05,
    "bulk": 20,
    "queue_limit": 50,
    "scheduler": False,
    "catch_up": False,
}

# --- The live stream ---------------------------------------------------------------------------------

if _env.redis_url is not None:
    CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [_env.redis_url]},
        }
    }
else:
    CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "sessions_app.live.layer.UnixSocketChannelLayer",
            "CONFIG": {"path": str(_layer_socket)},
        }
    }

REST_FRAMEWORK = {"UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser"}
