import io.github.redisdq.DqQueue;
import io.github.redisdq.Handler;
import io.github.redisdq.Worker;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** The Java library of dq: a worker with ten threads. */
final class DqLibrary implements QueueSystem {
    private final Dq plain;
    private final DqQueue queue;

    DqLibrary(int port) {
        plain = new Dq(port);
        queue = DqQueue.connect("redis://127.0.0.1:" + port, "jobs");
    }

    @Override
    public void add(Job job) throws Exception {
        plain.add(job);
    }

    @Override
    public void addMany(List<Job> jobs) throws Exception {
        plain.addMany(jobs);
    }

    @Override
    public void work(Seen seen, Runnable isReady) {
        Handler<Void> handler = Handler.of(job -> seen.handle(new String(job.payload(), StandardCharsets.UTF_8)));
        Worker.on(queue).handler(handler).concurrency(10).build().start();
        isReady.run();
    }
}
