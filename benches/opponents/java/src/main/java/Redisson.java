import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RBlockingQueue;
import org.redisson.api.RDelayedQueue;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.Config;

/** Redisson's RDelayedQueue in front of an RBlockingQueue: what was taken is gone, there is no acknowledgement. */
final class Redisson implements QueueSystem {
    private final RBlockingQueue<String> queue;
    private final RDelayedQueue<String> delayed;

    private final int threads;

    Redisson(int port, int threads) {
        this.threads = threads;
        Config config = new Config();
        config.useSingleServer().setAddress("redis://127.0.0.1:" + port);
        RedissonClient client = org.redisson.Redisson.create(config);
        queue = client.getBlockingQueue("jobs", StringCodec.INSTANCE);
        delayed = client.getDelayedQueue(queue);
    }

    @Override
    public void add(Job job) throws Exception {
        offer(job).toCompletableFuture().get();
    }

    /** All on the way at once, as the client pipelines what does not wait. */
    @Override
    public void addMany(List<Job> jobs) throws Exception {
        List<CompletionStage<?>> added = new ArrayList<>();
        for (Job job : jobs) {
            added.add(offer(job));
        }
        for (CompletionStage<?> one : added) {
            one.toCompletableFuture().get();
        }
    }

    private CompletionStage<?> offer(Job job) {
        if (job.dueMs() == null) {
            return queue.offerAsync(job.payload());
        }
        long delayMs = Math.max(0, job.dueMs() - System.currentTimeMillis());
        return delayed.offerAsync(job.payload(), delayMs, TimeUnit.MILLISECONDS);
    }

    @Override
    public void work(Seen seen, Runnable isReady) throws Exception {
        queue.size();
        isReady.run();
        for (int n = 1; n < threads; n++) {
            Thread thread = new Thread(() -> take(seen));
            thread.setDaemon(true);
            thread.start();
        }
        take(seen);
    }

    private void take(Seen seen) {
        try {
            while (!seen.handle(queue.take())) {
            }
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }
}
