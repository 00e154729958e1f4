import io.github.redisdq.redisson.DqBlockingQueue;
import io.github.redisdq.redisson.DqDelayedQueue;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/**
 * Traffic while an application moves: it offers to Redisson's queue, after the line "switch" to dq's, until the line "stop".
 * Consumers of both run all the time. Prints what is offered and taken.
 */
public class Move {
    private static volatile boolean isOld = true;
    private static volatile boolean isStopping;

    public static void main(String[] arguments) throws Exception {
        Config config = new Config();
        config.setCodec(StringCodec.INSTANCE);
        config.useSingleServer().setAddress("redis://127.0.0.1:" + arguments[0])
            .setConnectionMinimumIdleSize(1).setConnectionPoolSize(8);
        RedissonClient redisson = Redisson.create(config);
        RBlockingQueue<String> before = redisson.getBlockingQueue("orders");
        RBlockingQueue<String> after = DqBlockingQueue.of(redisson, "jobs");
        RDelayedQueue<String> delayedBefore = redisson.getDelayedQueue(before);
        RDelayedQueue<String> delayedAfter = DqDelayedQueue.of(redisson, "jobs", null);
        consume("old", before);
        consume("new", after);
        Thread producer = new Thread(() -> produce(delayedBefore, delayedAfter));
        producer.start();

        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in));
        for (String order = orders.readLine(); order != null; order = orders.readLine()) {
            if (order.equals("switch")) {
                isOld = false;
            } else {
                isStopping = true;
                producer.join();
                System.out.println("stopped");
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static void produce(RDelayedQueue<String> before, RDelayedQueue<String> after) {
        for (int n = 0; !isStopping; n++) {
            boolean goesToOld = isOld;
            String element = "{\"id\":\"e" + n + "\"}";
            // One in three is due at once, the others later than the move takes.
            long delay = n % 3 == 0 ? 20 : 3600_000;
            (goesToOld ? before : after).offer(element, delay, TimeUnit.MILLISECONDS);
            System.out.println("offered " + (goesToOld ? "old" : "new") + " " + element);
        }
    }

    private static void consume(String name, BlockingQueue<String> queue) {
        Thread thread = new Thread(() -> {
            while (true) {
                try {
                    System.out.println("took " + name + " " + queue.take());
                } catch (InterruptedException error) {
                    return;
                }
            }
        });
        thread.setDaemon(true);
        thread.start();
    }
}
