import java.util.List;
import java.util.Locale;
import java.util.function.IntFunction;
import java.util.stream.IntStream;

/** What the harness has a system do, for systems that are used from Java: as python/program.py. */
public final class Program {
    private static final int AHEAD_MS = 2000;
    private static final int BATCH = 100;
    private static final double WARM_UP_S = 0.5;

    private final QueueSystem system;
    private int number = 0;

    private Program(QueueSystem system) {
        this.system = system;
    }

    static void tell(String format, Object... facts) {
        System.out.println(String.format(Locale.ROOT, format, facts));
        System.out.flush();
    }

    private void addAll(int count, IntFunction<Job> job) throws Exception {
        for (int first = 0; first < count; first += BATCH) {
            system.addMany(IntStream.range(first, Math.min(first + BATCH, count)).mapToObj(job).toList());
        }
    }

    private void addSome(boolean isSingle) throws Exception {
        if (isSingle) {
            system.add(Job.far(number++, Job.PAYLOAD_BYTES));
            return;
        }
        List<Job> jobs = IntStream.range(number, number + BATCH)
                .mapToObj(at -> Job.far(at, Job.PAYLOAD_BYTES)).toList();
        system.addMany(jobs);
        number += BATCH;
    }

    private double addFor(boolean isSingle, double seconds) throws Exception {
        long began = System.nanoTime();
        double took = 0;
        while (took < seconds) {
            addSome(isSingle);
            took = (System.nanoTime() - began) / 1e9;
        }
        return took;
    }

    private void add(String how, double seconds) throws Exception {
        boolean isSingle = how.equals("single");
        addFor(isSingle, WARM_UP_S);
        int before = number;
        double took = addFor(isSingle, seconds);
        tell("{\"jobs\": %d, \"seconds\": %f, \"jobs_in_all\": %d}", number - before, took, number);
    }

    private void fill(int count, int size) throws Exception {
        addAll(count, at -> Job.far(at, size));
        tell("{\"jobs\": %d}", count);
    }

    private void warmUp(int count) throws Exception {
        addAll(count, Job::due);
        if (count > 0) {
            System.in.read();
        }
    }

    private void ready(int count, int warm) throws Exception {
        warmUp(warm);
        double began = Seen.nowUs() / 1e6;
        addAll(count, at -> Job.due(warm + at));
        tell("{\"began\": %f}", began);
    }

    private void paced(int count, double seconds, int warm) throws Exception {
        warmUp(warm);
        long first = System.currentTimeMillis() + 100;
        for (int at = 0; at < count; at++) {
            long addMs = first + (long) (at * seconds * 1000 / count);
            long waitUs = addMs * 1000 - Seen.nowUs();
            if (waitUs > 0) {
                Thread.sleep(waitUs / 1000, (int) (waitUs % 1000) * 1000);
            }
            system.add(Job.at(addMs + AHEAD_MS, warm + at, Job.PAYLOAD_BYTES));
        }
        tell("{\"jobs\": %d}", count);
    }

    private void work(int count, int warm) throws Exception {
        system.work(new Seen(count, warm), () -> tell("{\"ready\": true}"));
        Thread.sleep(Long.MAX_VALUE); // whoever measures looks at it yet
    }

    private void run(String task, String[] words) throws Exception {
        switch (task) {
            case "add" -> add(words[2], Double.parseDouble(words[3]));
            case "fill" -> fill(Integer.parseInt(words[2]), Integer.parseInt(words[3]));
            case "ready" -> ready(Integer.parseInt(words[2]), Integer.parseInt(words[3]));
            case "paced" -> paced(Integer.parseInt(words[2]), Double.parseDouble(words[3]), Integer.parseInt(words[4]));
            case "work" -> work(Integer.parseInt(words[2]), Integer.parseInt(words[3]));
            default -> throw new IllegalArgumentException(task);
        }
    }

    public static void main(String[] words) throws Exception {
        int port = Integer.parseInt(System.getenv("BENCH_PORT"));
        QueueSystem system = switch (words[0]) {
            case "dq" -> new Dq(port);
            case "dq_library" -> new DqLibrary(port);
            case "jobrunr" -> new JobRunr(port);
            case "redisson_10" -> new Redisson(port, 10);
            default -> new Redisson(port, 1);
        };
        new Program(system).run(words[1], words);
        System.exit(0);
    }
}
