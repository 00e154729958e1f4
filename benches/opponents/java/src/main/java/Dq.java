import java.util.List;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.Pipeline;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.util.SafeEncoder;

/** dq through Jedis: one job at a time. */
final class Dq implements QueueSystem {
    private static final String QUEUE = "jobs";
    private static final ProtocolCommand ADD = () -> SafeEncoder.encode("DQ.ADD");
    private static final ProtocolCommand BPOP = () -> SafeEncoder.encode("DQ.BPOP");
    private static final ProtocolCommand ACK = () -> SafeEncoder.encode("DQ.ACK");

    private final Jedis server;

    Dq(int port) {
        server = new Jedis("127.0.0.1", port);
    }

    private static String[] words(Job job) {
        String id = Integer.toString(job.number());
        return job.dueMs() == null
                ? new String[] {QUEUE, id, job.payload()}
                : new String[] {QUEUE, id, job.payload(), "AT", Long.toString(job.dueMs())};
    }

    @Override
    public void add(Job job) {
        server.sendCommand(ADD, words(job));
    }

    @Override
    public void addMany(List<Job> jobs) {
        Pipeline pipeline = server.pipelined();
        jobs.forEach(job -> pipeline.sendCommand(ADD, words(job)));
        pipeline.syncAndReturnAll();
    }

    @Override
    public void work(Seen seen, Runnable isReady) {
        server.ping();
        isReady.run();
        boolean isOver = false;
        while (!isOver) {
            List<?> job = (List<?>) server.sendBlockingCommand(BPOP, QUEUE, "0");
            isOver = seen.handle(text(job.get(2)));
            server.sendCommand(ACK, QUEUE, "WITHTOKENS", text(job.get(1)), text(job.get(3)));
        }
    }

    private static String text(Object bytes) {
        return SafeEncoder.encode((byte[]) bytes);
    }
}
