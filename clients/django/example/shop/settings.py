import os
from pathlib import Path

import django

SECRET_KEY = "only an example"
DEBUG = True
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "shop.urls"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = ["dq.django", "shop"]
if django.VERSION < (6,):
    INSTALLED_APPS += ["django_tasks"]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("SHOP_DB", Path(__file__).parents[1] / "shop.sqlite3"),
    }
}
TASKS = {
    "default": {
        "BACKEND": "dq.django.DqBackend",
        "QUEUES": ["default", "mails"],
        "OPTIONS": {"url": os.environ.get("DQ_URL", "redis://localhost"), "prefix": "shop:"},
    }
}
