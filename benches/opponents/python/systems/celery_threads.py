"""Celery as in celery_.py, with a pool of ten threads."""

from systems import celery_


class System(celery_.System):
    pool = ("threads", "--concurrency", "10")
