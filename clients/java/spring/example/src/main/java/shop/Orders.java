package shop;

import io.github.redisdq.JobOptions;
import io.github.redisdq.spring.DqListener;
import io.github.redisdq.spring.DqTemplate;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.stereotype.Service;

@Service
public class Orders {
    /** The state of an order. */
    public enum State {
        OPEN,
        PAID,
        CLOSED
    }

    /** The data of a job. */
    public record TimeOut(long order) {}

    private static final String QUEUE = "orders";

    private final DqTemplate dq;
    private final Duration timeToPay;
    private final Map<Long, State> states = new ConcurrentHashMap<>(); // in place of a database

    public Orders(DqTemplate dq, @Value("${shop.time-to-pay}") Duration timeToPay) {
        this.dq = dq;
        this.timeToPay = timeToPay;
    }

    private static String job(long order) {
        return "close:" + order;
    }

    public void place(long order) {
        states.put(order, State.OPEN);
        dq.add(QUEUE, new TimeOut(order), JobOptions.withId(job(order)).delay(timeToPay));
    }

    /** False if the order was closed first. */
    public boolean pay(long order) {
        boolean isPaid = states.replace(order, State.OPEN, State.PAID);
        dq.cancel(QUEUE, job(order)); // without this, the job would find nothing to do: a job may come twice, so it has to check
        return isPaid;
    }

    public State state(long order) {
        return states.get(order);
    }

    @DqListener(queue = QUEUE, concurrency = "${shop.listeners}")
    void close(TimeOut timeOut) {
        states.replace(timeOut.order(), State.OPEN, State.CLOSED);
    }
}
