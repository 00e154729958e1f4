import django

SECRET_KEY = "for tests"
USE_TZ = True
INSTALLED_APPS = ["dq.django"] if django.VERSION >= (6,) else ["dq.django", "django_tasks"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
TASKS = {"default": {"BACKEND": "dq.django.DqBackend"}}
