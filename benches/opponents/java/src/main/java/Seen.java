import java.time.Instant;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** What a worker has been given. */
final class Seen {
    private final int wanted;
    private final int warm;
    private final Set<String> numbers = new HashSet<>();
    private final List<Long> lateUs = new ArrayList<>();
    private int twice = 0;

    Seen(int wanted, int warm) {
        this.wanted = wanted;
        this.warm = warm;
    }

    static long nowUs() {
        Instant now = Instant.now();
        return now.getEpochSecond() * 1_000_000 + now.getNano() / 1000;
    }

    /** True when that was the last job. */
    synchronized boolean handle(String payload) {
        long nowUs = nowUs();
        String[] words = payload.split(" ", 3);
        if (!numbers.add(words[1])) {
            twice++;
            return false;
        }
        long dueMs = Long.parseLong(words[0]);
        if (dueMs > 0) {
            lateUs.add(nowUs - dueMs * 1000);
        }
        if (numbers.size() == warm) {
            Program.tell("{\"warm\": true}");
        }
        boolean isLast = numbers.size() == wanted;
        if (isLast) {
            Program.tell("{\"ended\": %f, \"twice\": %d, \"late_us\": %s}", nowUs() / 1e6, twice, lateUs);
        }
        return isLast;
    }
}
