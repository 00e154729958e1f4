package shop;

import static org.assertj.core.api.Assertions.assertThat;

import io.github.redisdq.spring.DqTemplate;
import io.github.redisdq.testing.DqServer;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.TestConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.test.annotation.DirtiesContext;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;

/** The whole application on a server of its own, whose clock the test moves. */
@SpringBootTest
@DirtiesContext
@Timeout(120)
class OrdersTest {
    private static final DqServer SERVER = DqServer.start();

    @DynamicPropertySource
    static void server(DynamicPropertyRegistry registry) {
        registry.add("spring.data.redis.url", SERVER::url);
    }

    /** So that it ends after the listeners. */
    @TestConfiguration
    static class OfTests {
        @Bean(destroyMethod = "close")
        DqServer server() {
            return SERVER;
        }
    }

    @Autowired
    private Orders orders;

    @Autowired
    private DqTemplate dq;

    @Test
    void anOrderThatNobodyPaysIsClosedAfterHalfAnHour() throws InterruptedException {
        orders.place(17);
        orders.place(18);
        SERVER.clock().advance(Duration.ofMinutes(30).minusMillis(1));
        assertThat(orders.pay(18)).isTrue();
        assertThat(orders.state(17)).isEqualTo(Orders.State.OPEN);
        SERVER.clock().advance(Duration.ofMillis(1));
        while (dq.queue("orders").len() > 0) {
            Thread.sleep(5);
        }
        assertThat(orders.state(17)).isEqualTo(Orders.State.CLOSED);
        assertThat(orders.state(18)).isEqualTo(Orders.State.PAID);
        assertThat(orders.pay(17)).isFalse();
    }
}
