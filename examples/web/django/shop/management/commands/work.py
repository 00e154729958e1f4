from django.core.management.base import BaseCommand
from shop.jobs import worker


class Command(BaseCommand):
    help = "Handles the jobs of the shop."

    def handle(self, **options: object) -> None:
        worker().run()
