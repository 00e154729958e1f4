from django.urls import path

from . import views

urlpatterns = [path("orders/<int:number>", views.place), path("results/<str:id>", views.result)]
