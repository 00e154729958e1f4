"""Celery and kombu on dq: ``broker_url = "dq://localhost/0"``."""

from kombu.transport import TRANSPORT_ALIASES

__version__ = "0.1.0"

TRANSPORT_ALIASES.update(
    {
        "dq": "dq_celery.transport:Transport",
        "dqs": "dq_celery.transport:SecureTransport",
        "dq+sentinel": "dq_celery.transport:Transport",
        "dqs+sentinel": "dq_celery.transport:SecureTransport",
    }
)

#: kombu has no entry point for transports. It has one for serializers, which are loaded before Celery makes a
#: connection: loading this one imports this module. It registers a content type without an encoder or a decoder.
LOADED = (None, None, "application/x-dq-transport", "utf-8")
