import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/** Delayed elements made by Redisson itself. Prints: earliest due, latest due, element. */
public class Make {
    public static void main(String[] arguments) {
        Config config = new Config();
        config.setCodec(StringCodec.INSTANCE);
        config.useSingleServer().setAddress("redis://127.0.0.1:" + arguments[0])
            .setConnectionMinimumIdleSize(1).setConnectionPoolSize(2);
        RedissonClient redisson = Redisson.create(config);
        RBlockingQueue<String> queue = redisson.getBlockingQueue(arguments[1]);
        RDelayedQueue<String> delayed = redisson.getDelayedQueue(queue);
        int count = Integer.parseInt(arguments[2]);
        for (int n = 0; n < count; n++) {
            // Equal elements, and an order of dues that is not the order of adding.
            String element = "order " + n / 2;
            long delay = 3600_000 + (n * 7919L % 1000) * 1000;
            long before = System.currentTimeMillis();
            delayed.offer(element, delay, TimeUnit.MILLISECONDS);
            System.out.println((before + delay) + "\t" + (System.currentTimeMillis() + delay) + "\t" + element);
        }
        queue.offer("due already");
        delayed.destroy();
        redisson.shutdown();
    }
}
