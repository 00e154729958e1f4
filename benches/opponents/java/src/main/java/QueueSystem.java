import java.util.List;

interface QueueSystem {
    void add(Job job) throws Exception;

    void addMany(List<Job> jobs) throws Exception;

    void work(Seen seen, Runnable isReady) throws Exception;
}
