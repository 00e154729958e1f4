import { Injectable, Logger, OnApplicationBootstrap, OnApplicationShutdown, OnModuleDestroy } from '@nestjs/common';
import { Job, Queue, Worker } from 'dq-redis';

interface Order {
  order: number;
}

@Injectable()
export class OrdersService implements OnApplicationBootstrap, OnModuleDestroy, OnApplicationShutdown {
  private readonly logger = new Logger(OrdersService.name);
  private readonly queue = new Queue<Order>('redis://localhost', 'orders');
  private readonly worker = new Worker(this.queue, (job: Job<Order>) => this.close(job), {
    attempts: 5,
    backoff: [60_000, 300_000, 600_000],
    concurrency: 10,
  });

  place(order: number): Promise<string | null> {
    return this.queue.add({ order }, { id: `close:${order}`, delay: 30 * 60_000 });
  }

  async pay(order: number): Promise<boolean> {
    return (await this.queue.delete(`close:${order}`, { unreserved: true })) > 0;
  }

  private async close(job: Job<Order>): Promise<void> {
    this.logger.log(`closed order ${job.data.order}`);
  }

  onApplicationBootstrap(): void {
    this.worker.start();
  }

  onModuleDestroy(): Promise<void> {
    return this.worker.stop();
  }

  onApplicationShutdown(): Promise<void> {
    return this.queue.close();
  }
}
