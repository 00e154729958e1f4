import { ConflictException, Controller, HttpCode, Param, ParseIntPipe, Post } from '@nestjs/common';
import { OrdersService } from './orders.service.js';

@Controller('orders')
export class OrdersController {
  constructor(private readonly orders: OrdersService) {}

  @Post(':number')
  async place(@Param('number', ParseIntPipe) order: number): Promise<{ order: number }> {
    if ((await this.orders.place(order)) === null) throw new ConflictException('there is such an order');
    return { order };
  }

  @Post(':number/paid')
  @HttpCode(200)
  async pay(@Param('number', ParseIntPipe) order: number): Promise<{ paid: number }> {
    if (!(await this.orders.pay(order))) throw new ConflictException('closed or unknown');
    return { paid: order };
  }
}
