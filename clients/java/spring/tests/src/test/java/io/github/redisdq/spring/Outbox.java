package io.github.redisdq.spring;

import io.github.redisdq.JobOptions;
import java.nio.charset.StandardCharsets;
import java.sql.Timestamp;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import org.springframework.jdbc.core.JdbcTemplate;

/** That of docs/spring.md; its comments are there. */
class Outbox {
    private final JdbcTemplate jdbc;
    private final DqTemplate dq;

    Outbox(JdbcTemplate jdbc, DqTemplate dq) {
        this.jdbc = jdbc;
        this.dq = dq;
    }

    static void create(JdbcTemplate jdbc) {
        jdbc.execute("create table dq_outbox (seq bigint generated always as identity primary key,"
                + " queue text not null, id text not null, payload text not null, due timestamp with time zone not null)");
    }

    void put(String queue, String id, String json, Duration delay) {
        jdbc.update("insert into dq_outbox (queue, id, payload, due) values (?, ?, ?, ?)",
                queue, id, json, Timestamp.from(Instant.now().plus(delay)));
    }

    void relay() {
        record Row(long seq, String queue, String id, String payload, Instant due) {}
        List<Row> rows = jdbc.query(
                "select seq, queue, id, payload, due from dq_outbox order by seq limit 500 for update skip locked",
                (row, n) -> new Row(
                        row.getLong(1), row.getString(2), row.getString(3), row.getString(4), row.getTimestamp(5).toInstant()));
        for (Row row : rows) {
            dq.queue(row.queue()).add(row.payload().getBytes(StandardCharsets.UTF_8), JobOptions.withId(row.id()).at(row.due()));
            jdbc.update("delete from dq_outbox where seq = ?", row.seq());
        }
    }
}
