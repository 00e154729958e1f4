from django.db import models


class Order(models.Model):
    state = models.CharField(max_length=10, default="open")
