import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.time.Instant;
import java.util.List;
import org.jobrunr.configuration.JobRunrConfiguration.JobRunrConfigurationResult;
import org.jobrunr.jobs.lambdas.JobRequest;
import org.jobrunr.jobs.lambdas.JobRequestHandler;
import org.jobrunr.scheduling.JobRequestScheduler;
import org.jobrunr.server.BackgroundJobServerConfiguration;
import org.jobrunr.storage.StorageProviderUtils.DatabaseOptions;
import org.jobrunr.storage.sql.common.SqlStorageProviderFactory;

/** JobRunr with PostgreSQL, ten workers; its first job is looked for when the server polls. */
final class JobRunr implements QueueSystem {
    private static Seen seen;

    private final HikariDataSource database;
    private JobRequestScheduler jobs;

    /** A job's payload, as JobRunr keeps it. */
    public static final class Run implements JobRequest {
        public String payload;

        public Run() {}

        Run(String payload) {
            this.payload = payload;
        }

        @Override
        public Class<Handle> getJobRequestHandler() {
            return Handle.class;
        }
    }

    /** What runs it. */
    public static final class Handle implements JobRequestHandler<Run> {
        @Override
        public void run(Run job) {
            seen.handle(job.payload);
        }
    }

    JobRunr(int port) {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl("jdbc:postgresql://127.0.0.1:" + port + "/postgres?user=postgres");
        database = new HikariDataSource(config);
    }

    private JobRequestScheduler jobs() {
        if (jobs == null) {
            jobs = configured(null).getJobRequestScheduler();
        }
        return jobs;
    }

    /** The worker makes the tables, before a producer comes. */
    private JobRunrConfigurationResult configured(BackgroundJobServerConfiguration server) {
        var options = server == null ? DatabaseOptions.NO_VALIDATE : DatabaseOptions.CREATE;
        return org.jobrunr.configuration.JobRunr.configure()
                .useStorageProvider(SqlStorageProviderFactory.using(database, null, options))
                .useBackgroundJobServerIf(server != null, server)
                .initialize();
    }

    @Override
    public void add(Job job) {
        if (job.dueMs() == null) {
            jobs().enqueue(new Run(job.payload()));
        } else {
            jobs().schedule(Instant.ofEpochMilli(job.dueMs()), new Run(job.payload()));
        }
    }

    /** Without dues, as its call for many has none. */
    @Override
    public void addMany(List<Job> many) {
        jobs().enqueue(many.stream().map(job -> new Run(job.payload())));
    }

    @Override
    public void work(Seen jobsSeen, Runnable isReady) {
        seen = jobsSeen;
        configured(BackgroundJobServerConfiguration.usingStandardBackgroundJobServerConfiguration()
                .andWorkerCount(10).andPollIntervalInSeconds(5));
        isReady.run();
    }
}
