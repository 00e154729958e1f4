package io.github.redisdq.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.github.redisdq.Codec;
import io.github.redisdq.DqException;
import io.github.redisdq.DqQueue;
import io.github.redisdq.JedisConnector;
import io.github.redisdq.JobOptions;
import io.github.redisdq.Kind;
import io.github.redisdq.State;
import io.github.redisdq.testing.DqExtension;
import io.github.redisdq.testing.DqServer;
import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.DriverManagerDataSource;
import org.springframework.jdbc.support.JdbcTransactionManager;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.transaction.support.TransactionTemplate;
import shop.Outbox;

/** What the template sends when a transaction commits, and the outbox of docs/spring.md. */
@Timeout(60)
@ExtendWith(DqExtension.class)
class TransactionTest {
    private final DriverManagerDataSource database =
            new DriverManagerDataSource("jdbc:h2:mem:" + UUID.randomUUID() + ";MODE=PostgreSQL;DB_CLOSE_DELAY=-1");
    private final JdbcTransactionManager manager = new JdbcTransactionManager(database);
    private final TransactionTemplate transaction = new TransactionTemplate(manager);
    private JedisConnector connector;
    private DqTemplate dq;
    private DqQueue queue;

    @BeforeEach
    void open(DqServer server) {
        connector = JedisConnector.of(URI.create(server.url()));
        dq = new DqTemplate(connector, Codec.json(), List.of());
        queue = dq.queue("q");
    }

    @AfterEach
    void close() {
        connector.close();
    }

    @Test
    void aJobIsAddedAfterTheCommitAsItWasWhenItWasSaid() {
        StringBuilder data = new StringBuilder("before");
        String[] id = new String[1];
        transaction.executeWithoutResult(status -> {
            id[0] = dq.add("q", data);
            data.append(", and after");
            assertThat(dq.add("q", "other", JobOptions.withId("other").delay(Duration.ofHours(1)))).isEqualTo("other");
            assertThat(dq.reschedule("q", "other", Duration.ofHours(2))).isTrue();
            assertThat(queue.len()).isZero();
        });
        assertThat(new String(queue.get(id[0]).payload())).isEqualTo("\"before\"");
        assertThat(Duration.between(queue.get(id[0]).due(), queue.get("other").due())).isGreaterThanOrEqualTo(Duration.ofHours(2));
    }

    @Test
    void manyJobsAreAddedAfterTheCommit() {
        Kind<Integer, Void> close = Kind.of("close", Integer.class);
        List<DqQueue.NewJob> jobs = List.of(close.job(1), close.job(2, it -> it.id("two")));
        List<List<String>> ids = new ArrayList<>();
        transaction.executeWithoutResult(status -> {
            ids.add(dq.addMany("q", jobs));
            ids.add(List.of(dq.add("q", close.job(3))));
            assertThat(queue.len()).isZero();
        });
        assertThat(ids.get(0)).hasSize(2).endsWith("two").allMatch(id -> queue.get(id).label().equals("close"));
        assertThat(queue.get(ids.get(1).get(0)).label()).isEqualTo("close");
        assertThat(dq.addMany("q", jobs)).hasSize(2).endsWith((String) null);
    }

    @Test
    void nothingHappensWhereItIsRolledBack() {
        queue.add("x", JobOptions.withId("kept").delay(Duration.ofHours(1)));
        transaction.executeWithoutResult(status -> {
            dq.add("q", "never");
            dq.cancel("q", "kept");
            status.setRollbackOnly();
        });
        assertThat(queue.len()).isEqualTo(1);
        transaction.executeWithoutResult(status -> dq.cancel("q", "kept"));
        assertThat(queue.len()).isZero();
    }

    @Test
    void whatASavepointTookBackIsNotSent() {
        TransactionTemplate nested = new TransactionTemplate(manager);
        nested.setPropagationBehavior(TransactionDefinition.PROPAGATION_NESTED);
        TransactionTemplate ownOne = new TransactionTemplate(manager);
        ownOne.setPropagationBehavior(TransactionDefinition.PROPAGATION_REQUIRES_NEW);
        transaction.executeWithoutResult(status -> {
            dq.add("q", 1, JobOptions.withId("first"));
            nested.executeWithoutResult(inner -> {
                dq.add("q", 2, JobOptions.withId("taken back"));
                inner.setRollbackOnly();
            });
            ownOne.executeWithoutResult(inner -> dq.add("q", 3, JobOptions.withId("own")));
            assertThat(queue.get("own")).isNotNull();
            assertThat(queue.get("first")).isNull();
        });
        assertThat(queue.get("first")).isNotNull();
        assertThat(queue.get("taken back")).isNull();
    }

    /** Spring does not call a synchronization that is registered during the commit. */
    @Test
    void whatIsSaidWhileItCommitsIsSentToo() {
        transaction.executeWithoutResult(status ->
                TransactionSynchronizationManager.registerSynchronization(new TransactionSynchronization() {
                    @Override
                    public void afterCommit() {
                        dq.add("q", 1);
                    }

                    @Override
                    public void afterCompletion(int end) {
                        dq.add("q", 2);
                    }
                }));
        assertThat(queue.len()).isEqualTo(2);
    }

    @Test
    void whatCannotBeSentIsSaid() {
        DqTemplate nowhere = new DqTemplate(JedisConnector.of(URI.create("redis://127.0.0.1:1")), Codec.json(), List.of());
        assertThatThrownBy(() -> transaction.executeWithoutResult(status -> nowhere.add("q", 1, JobOptions.withId("x"))))
                .isInstanceOf(DqException.class)
                .hasMessageStartingWith("the transaction has committed, but job x of q is not added");
    }

    @Test
    void withoutATransactionOrWithTheSettingOffItIsSentAtOnce() {
        dq.add("q", 1);
        assertThat(queue.len()).isEqualTo(1);
        DqTemplate atOnce = new DqTemplate(connector, Codec.json(), List.of(), false);
        transaction.executeWithoutResult(status -> {
            atOnce.add("q", 2);
            assertThat(queue.len()).isEqualTo(2);
            assertThat(atOnce.cancel("q", "none")).isFalse();
        });
    }

    private void relay(JdbcTemplate jdbc) {
        new Outbox(jdbc, dq).relay();
    }

    @Test
    void anOutboxLosesNothingAndAddsNothingTwice() {
        JdbcTemplate jdbc = new JdbcTemplate(database);
        jdbc.execute(Outbox.TABLE);
        Outbox outbox = new Outbox(jdbc, dq);
        transaction.executeWithoutResult(status -> outbox.put("q", "close:17", "{\"order\":17}", Duration.ofMinutes(30)));
        transaction.executeWithoutResult(status -> {
            outbox.put("q", "close:18", "{\"order\":18}", Duration.ofMinutes(30));
            status.setRollbackOnly();
        });
        assertThat(queue.len()).isZero();
        transaction.executeWithoutResult(status -> { // a relay that dies before its commit
            relay(jdbc);
            status.setRollbackOnly();
        });
        transaction.executeWithoutResult(status -> relay(jdbc));
        transaction.executeWithoutResult(status -> relay(jdbc));
        assertThat(queue.len()).isEqualTo(1);
        assertThat(new String(queue.get("close:17").payload())).isEqualTo("{\"order\":17}");
        assertThat(queue.len(State.DELAYED)).isEqualTo(1);
        assertThat(jdbc.queryForObject("select count(*) from dq_outbox", Integer.class)).isZero();
    }
}
