from django.urls import path
from shop import views

urlpatterns = [
    path("orders/<int:number>", views.place),
    path("orders/<int:number>/paid", views.pay),
]
