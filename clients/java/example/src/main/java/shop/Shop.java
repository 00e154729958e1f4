package shop;

import io.github.redisdq.DqQueue;
import io.github.redisdq.GiveUpException;
import io.github.redisdq.Handler;
import io.github.redisdq.Job;
import io.github.redisdq.JobOptions;
import io.github.redisdq.Worker;
import io.github.redisdq.WorkerBuilder;
import java.time.Duration;

/** A shop: a reminder before a trial ends, payments that are retried, and exports that take long. */
public final class Shop {
    /** How the shop reaches the world; tests replace it. */
    public interface World {
        void mail(String to, String text);

        void pay(int order, int amount);
    }

    record Trial(String customer) {}

    record Payment(int order, int amount) {}

    record Export(int pages) {}

    private final DqQueue queue;
    private final World world;

    public Shop(DqQueue queue, World world) {
        this.queue = queue;
        this.world = world;
    }

    public void startTrial(String customer) {
        JobOptions inAMonth = JobOptions.withId("trial:" + customer).delay(Duration.ofDays(30));
        queue.add(new Trial(customer), inAMonth.kind("remind"));
    }

    public void subscribe(String customer) {
        queue.delete("trial:" + customer);
    }

    public void order(int number, int amount) {
        queue.add(new Payment(number, amount), JobOptions.withId("charge:" + number).kind("charge"));
    }

    public void export(int pages) {
        queue.add(new Export(pages), JobOptions.withId("export").kind("export"));
    }

    public WorkerBuilder worker() {
        return Worker.on(queue)
                .handler(remind())
                .handler(charge())
                .handler(Handler.of(Export.class, this::export).kind("export"));
    }

    Handler<Trial> remind() {
        return Handler.of(Trial.class, (job, trial) -> world.mail(trial.customer, "Your trial ends tomorrow."))
                .kind("remind");
    }

    Handler<Payment> charge() {
        return Handler.of(Payment.class, (job, payment) -> {
                    if (payment.amount <= 0) {
                        throw new GiveUpException("nothing to pay");
                    }
                    world.pay(payment.order, payment.amount);
                })
                .kind("charge")
                .attempts(4)
                .backoff(Duration.ofMinutes(1), Duration.ofHours(1), Duration.ofDays(1));
    }

    private void export(Job job, Export export) throws InterruptedException {
        for (int page = 0; page < export.pages; page++) {
            job.check(); // if the worker stops, another one starts over
            world.mail("accounting", "page " + page);
            job.pause(Duration.ofMillis(10));
        }
    }
}
