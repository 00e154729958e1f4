package shop;

import io.github.redisdq.JobOptions;
import io.github.redisdq.spring.DqTemplate;
import java.nio.charset.StandardCharsets;
import java.sql.Timestamp;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.stereotype.Component;
import org.springframework.transaction.annotation.Transactional;

/** Moves jobs from a table to their queues: docs/spring.md. Its table is made once, by a migration. */
@Component
public class Outbox {
    public static final String TABLE = """
            create table dq_outbox (
              seq bigint generated always as identity primary key,
              queue text not null,
              id text not null,
              payload text not null,
              due timestamp with time zone not null
            )""";

    private final JdbcTemplate jdbc;
    private final DqTemplate dq;

    public Outbox(JdbcTemplate jdbc, DqTemplate dq) {
        this.jdbc = jdbc;
        this.dq = dq;
    }

    /** In the transaction that changes the data. */
    public void put(String queue, String id, String json, Duration delay) {
        jdbc.update("insert into dq_outbox (queue, id, payload, due) values (?, ?, ?, ?)",
                queue, id, json, Timestamp.from(Instant.now().plus(delay)));
    }

    @Scheduled(fixedDelay = 200)
    @Transactional
    public void relay() {
        record Row(long seq, String queue, String id, String payload, Instant due) {}
        List<Row> rows = jdbc.query(
                "select seq, queue, id, payload, due from dq_outbox order by seq limit 500 for update skip locked",
                (row, n) -> new Row(
                        row.getLong(1), row.getString(2), row.getString(3), row.getString(4), row.getTimestamp(5).toInstant()));
        for (Row row : rows) { // at once, before the commit that deletes the row
            dq.queue(row.queue()).add(row.payload().getBytes(StandardCharsets.UTF_8), JobOptions.withId(row.id()).at(row.due()));
            jdbc.update("delete from dq_outbox where seq = ?", row.seq());
        }
    }
}
