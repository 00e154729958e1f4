package io.github.redisdq.spring;

import static io.github.redisdq.spring.ServerProcess.until;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.github.redisdq.Around;
import io.github.redisdq.Connector;
import io.github.redisdq.DqException;
import io.github.redisdq.DqQueue;
import io.github.redisdq.GiveUpException;
import io.github.redisdq.JedisConnector;
import io.github.redisdq.Job;
import io.github.redisdq.JobFailedException;
import io.github.redisdq.JobInfo;
import io.github.redisdq.JobOptions;
import io.github.redisdq.State;
import io.github.redisdq.TimedOutException;
import io.github.redisdq.testing.Clock;
import io.github.redisdq.testing.DqExtension;
import io.github.redisdq.testing.DqServer;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.lang.reflect.Proxy;
import java.lang.reflect.Type;
import java.net.URI;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.scheduling.annotation.Async;
import org.springframework.scheduling.annotation.EnableAsync;
import org.springframework.scheduling.concurrent.ThreadPoolTaskExecutor;

/** Against a real server, on connections of either client. */
@Timeout(60)
@ExtendWith(DqExtension.class)
class LiveTest {
    private static final Duration MINUTE = Duration.ofMinutes(1);

    private ApplicationContextRunner runner(String client, DqServer server) {
        return new ApplicationContextRunner()
                .withPropertyValues("spring.data.redis.url=" + server.url(), "spring.data.redis.client-type=" + client)
                .withConfiguration(Boot.configurations());
    }

    record Order(int number) {}

    static class Shop {
        final BlockingQueue<Object> seen = new LinkedBlockingQueue<>();
        volatile boolean isOpen;

        @DqListener(queue = "orders", concurrency = "2", attempts = "2", backoff = "1m")
        void close(Order order, Job job) {
            seen.add(order);
            seen.add(job.attempt());
            if (!isOpen) {
                throw new IllegalStateException("the shop is closed");
            }
        }

        @DqListener(queue = "orders", kind = "remind")
        void remind(String customer) {
            throw new GiveUpException("no such customer: " + customer);
        }

        @DqListener(queue = "mails", batch = "10")
        void mail(List<Job> mails) {
            mails.forEach(mail -> seen.add(mail.data(String.class)));
        }

        @DqListener(queue = "raw")
        void raw(byte[] payload) {
            seen.add(payload.length);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"lettuce", "jedis"})
    void aListenerGetsWhatIsDue(String client, DqServer server, Clock clock) {
        runner(client, server).withBean(Shop.class).withBean(SimpleMeterRegistry.class).run(context -> {
            DqTemplate template = context.getBean(DqTemplate.class);
            Shop shop = context.getBean(Shop.class);
            assertThat(template.add("orders", new Order(17), JobOptions.withId("close:17").delay(MINUTE))).isEqualTo("close:17");
            assertThat(template.add("orders", new Order(18), JobOptions.withId("close:18").delay(MINUTE))).isNotNull();
            assertThat(template.cancel("orders", "close:18")).isTrue();
            assertThat(template.cancel("orders", "close:18")).isFalse();
            assertThat(shop.seen).isEmpty();
            clock.advance(MINUTE);
            assertThat(shop.seen.take()).isEqualTo(new Order(17));
            assertThat(shop.seen.take()).isEqualTo(1);
            DqQueue orders = template.queue("orders");
            until(() -> orders.len(State.DELAYED) == 1); // by the listener's backoff
            assertThat(orders.get("close:17").reason()).isEqualTo("IllegalStateException: the shop is closed");
            shop.isOpen = true;
            clock.advance(MINUTE);
            assertThat(shop.seen.take()).isEqualTo(new Order(17));
            assertThat(shop.seen.take()).isEqualTo(2);
            until(() -> orders.len() == 0);
            MeterRegistry meters = context.getBean(MeterRegistry.class);
            assertThat(meters.get("dq.listener").tags("queue", "orders", "outcome", "failure").timer().count()).isEqualTo(1);
            assertThat(meters.get("dq.listener").tags("queue", "orders", "outcome", "success").timer().count()).isEqualTo(1);
            assertThat(meters.get("dq.queue.jobs").tags("queue", "orders", "state", "dead").gauge().value()).isZero();
        });
    }

    static class Prices {
        @DqListener(queue = "prices", retryOn = IllegalStateException.class, timeout = "1m")
        Order price(Order order, Job job) throws Exception {
            int tax = job.step("tax", Integer.class, () -> 1);
            if (order.number() < 0) {
                throw new IllegalArgumentException("no such order");
            }
            job.sleep("think", Duration.ZERO);
            return new Order(order.number() + tax);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"lettuce", "jedis"})
    void whatAListenerReturnsIsReceived(String client, DqServer server) {
        List<String> seen = Collections.synchronizedList(new ArrayList<>());
        Around around = (job, next) -> {
            seen.add(job.id());
            return next.call();
        };
        runner(client, server).withBean(Prices.class).withBean(Around.class, () -> around).run(context -> {
            DqTemplate template = context.getBean(DqTemplate.class);
            assertThat(template.addAndWait("prices", new Order(7), JobOptions.create(), Order.class, MINUTE)).isEqualTo(new Order(8));
            assertThat(seen).hasSize(2);
            JobOptions named = JobOptions.withId("bad");
            assertThatThrownBy(() -> template.addAndWait("prices", new Order(-1), named, (Type) Order.class, MINUTE))
                    .isInstanceOf(JobFailedException.class)
                    .hasMessageContaining("IllegalArgumentException: no such order");
            assertThatThrownBy(() -> template.addAndWait("nobody", 1, JobOptions.create(), Integer.class, Duration.ofMillis(20)))
                    .isInstanceOf(TimedOutException.class);
        });
    }

    @ParameterizedTest
    @ValueSource(strings = {"lettuce", "jedis"})
    void kindsBatchesAndBytes(String client, DqServer server) {
        runner(client, server).withBean(Shop.class).run(context -> {
            DqTemplate template = context.getBean(DqTemplate.class);
            Shop shop = context.getBean(Shop.class);
            template.add("mails", "Dear Ann");
            assertThat(shop.seen.take()).isEqualTo("Dear Ann");
            template.add("raw", new byte[] {1, 2, 3}, Duration.ZERO);
            assertThat(shop.seen.take()).isEqualTo(3);
            template.add("orders", "bob", JobOptions.withId("bob").kind("remind"));
            until(() -> template.queue("orders").get("bob").state() == State.DEAD);
            JobInfo job = template.queue("orders").get("bob");
            assertThat(job.reason()).isEqualTo("no such customer: bob");
        });
    }

    static class Reports {
        final BlockingQueue<Object> seen = new LinkedBlockingQueue<>();

        @DqListener(queue = "reports", cron = "${reports.cron:0 2 * * *}", tz = "${reports.tz:Asia/Kolkata}")
        void nightly() {
            seen.add("nightly");
        }

        @DqListener(queue = "reports", cron = "30 2 * * *", kind = "second")
        void second(Job job) {
            seen.add(job.kind() + job.occurrence());
        }

        @DqListener(queue = "reports")
        void other(String data) {
            seen.add(data);
        }

        @DqListener(queue = "filled", batch = "10", fill = {"3", "1h"})
        void fill(List<Job> jobs) {
            seen.add(jobs.size());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"lettuce", "jedis"})
    void whenAListenerRunsIsSaidAtTheStart(String client, DqServer server, Clock clock) {
        Instant night = clock.now().truncatedTo(ChronoUnit.DAYS).plus(Duration.ofDays(1)); // 5:30 in Kolkata
        clock.set(night);
        ApplicationContextRunner runner = runner(client, server).withBean(Reports.class).withPropertyValues("spring.application.name=shop");
        for (int start = 0; start < 2; start++) {
            runner.run(context -> {
                DqQueue reports = context.getBean(DqTemplate.class).queue("reports");
                assertThat(reports.get("shop:Reports.nightly").rule().tz()).isEqualTo("Asia/Kolkata");
                assertThat(reports.next("shop:Reports.nightly", 1)).containsExactly(night.plus(Duration.ofMinutes(20 * 60 + 30)));
                assertThat(reports.next("shop:Reports.second", 1)).containsExactly(night.plus(Duration.ofMinutes(150)));
                assertThat(reports.len()).isEqualTo(2);
            });
        }
        runner.run(context -> {
            Reports reports = context.getBean(Reports.class);
            clock.advance(Duration.ofMinutes(150));
            assertThat(reports.seen.take()).isEqualTo("second" + night.plus(Duration.ofMinutes(150)));
            DqQueue queue = context.getBean(DqTemplate.class).queue("reports");
            until(() -> queue.len(State.RESERVED) == 0); // before its lease ends with the clock
            clock.advance(Duration.ofHours(18));
            assertThat(reports.seen.take()).isEqualTo("nightly");
            context.getBean(DqTemplate.class).add("reports", "by hand");
            assertThat(reports.seen.take()).isEqualTo("by hand");
        });
        runner.withPropertyValues("reports.tz=Asia/Kolkatta").run(context ->
                assertThat(context).getFailure().rootCause().hasMessageContaining("tz='Asia/Kolkatta': ERR TZ is not the name"));
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 5})
    void aServerThatComesLaterIsToldWhenAListenerRuns(int failures, DqServer server) {
        Connector inner = JedisConnector.of(URI.create(server.url()));
        AtomicInteger left = new AtomicInteger(failures);
        Connector late = (Connector) Proxy.newProxyInstance(getClass().getClassLoader(), new Class<?>[] {Connector.class}, (self, method, words) -> {
            if (method.getName().equals("call") && left.getAndDecrement() > 0) {
                throw new DqException("not yet");
            }
            return method.invoke(inner, words);
        });
        runner("jedis", server).withBean(Connector.class, () -> late).withBean(Reports.class).run(context -> {
            DqQueue reports = context.getBean(DqTemplate.class).queue("reports");
            until(() -> left.get() <= 0 && reports.len() == 2);
        });
    }

    @ParameterizedTest
    @ValueSource(strings = {"lettuce", "jedis"})
    void aBatchIsWaitedFor(String client, DqServer server) {
        runner(client, server).withBean(Reports.class).run(context -> {
            DqTemplate template = context.getBean(DqTemplate.class);
            for (int n = 0; n < 3; n++) {
                template.add("filled", n);
            }
            assertThat(context.getBean(Reports.class).seen.take()).isEqualTo(3);
        });
    }

    static class Slow {
        @Autowired
        StringRedisTemplate redis;

        final CountDownLatch isAtWork = new CountDownLatch(1);
        final CountDownLatch mayEnd = new CountDownLatch(1);
        volatile String result;

        @DqListener(queue = "slow", concurrency = "1")
        void handle() throws Exception {
            isAtWork.countDown();
            mayEnd.await();
            redis.opsForValue().set("result", "done");
            result = redis.opsForValue().get("result");
        }
    }

    /** What a listener uses stays until it has ended, and no other job begins. */
    @ParameterizedTest
    @ValueSource(strings = {"lettuce", "jedis"})
    void aListenerEndsBeforeItsConnections(String client, DqServer server) {
        Slow[] slow = new Slow[1];
        Thread[] ending = new Thread[1];
        runner(client, server).withBean(Slow.class).run(context -> {
            DqTemplate template = context.getBean(DqTemplate.class);
            slow[0] = context.getBean(Slow.class);
            template.add("slow", null, JobOptions.withId("first"));
            slow[0].isAtWork.await();
            template.add("slow", null, JobOptions.withId("second"));
            DqListeners listeners = context.getBean(DqListeners.class);
            ending[0] = new Thread(() -> {
                try {
                    until(() -> !listeners.isRunning());
                } catch (Exception error) {
                    throw new IllegalStateException(error);
                }
                slow[0].mayEnd.countDown();
            });
            ending[0].start();
        });
        assertThat(slow[0].result).isEqualTo("done");
        try (DqQueue queue = server.queue("slow")) {
            assertThat(queue.get("first")).isNull();
            assertThat(queue.get("second").state()).isEqualTo(State.READY);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"lettuce", "jedis"})
    void stoppingAndStartingAgain(String client, DqServer server) {
        runner(client, server).withBean(Shop.class).run(context -> {
            DqListeners listeners = context.getBean(DqListeners.class);
            DqTemplate template = context.getBean(DqTemplate.class);
            listeners.stop();
            template.add("mails", "Dear Ann");
            assertThat(template.queue("mails").len(State.READY)).isEqualTo(1);
            listeners.start();
            assertThat(context.getBean(Shop.class).seen.take()).isEqualTo("Dear Ann");
        });
    }

    @ParameterizedTest
    @ValueSource(strings = {"lettuce", "jedis"})
    void health(String client, DqServer server) {
        runner(client, server).withBean(Shop.class).run(context -> {
            DqTemplate template = context.getBean(DqTemplate.class);
            template.add("orders", new Order(1), MINUTE);
            assertThat(Boot.health(context).get("status")).isEqualTo("UP");
            assertThat(Boot.health(context).get("details").toString()).contains("orders={delayed=1");
            template.queue("orders").purge();
            StringRedisTemplate redis = context.getBean(StringRedisTemplate.class);
            until(() -> { // delete the key as an operator would: the worker's wait keeps an empty queue's key
                redis.delete("orders");
                redis.opsForValue().setIfAbsent("orders", "a text");
                return context.getBean(DqListeners.class).failure("orders") != null;
            });
            assertThat(Boot.health(context).get("status")).isEqualTo("DOWN");
            assertThat(Boot.health(context).get("details").toString()).contains("another type");
        });
    }

    @ParameterizedTest
    @ValueSource(strings = {"lettuce", "jedis"})
    void aKeyOfAnotherTypeEndsTheStart(String client, DqServer server) {
        runner(client, server).run(context ->
                context.getBean(StringRedisTemplate.class).opsForValue().set("orders", "a text"));
        runner(client, server).withBean(Shop.class).run(context ->
                assertThat(context).getFailure().rootCause().hasMessageContaining("WRONGTYPE"));
    }

    @EnableAsync(proxyTargetClass = true)
    static class Proxied {
        final BlockingQueue<String> seen = new LinkedBlockingQueue<>();

        @Async
        void later() {}

        @DqListener(queue = "proxied")
        public void handle(String text) {
            seen.add(text);
        }

        BlockingQueue<String> seen() {
            return seen;
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"lettuce"})
    void aBeanBehindAProxy(String client, DqServer server) {
        runner(client, server).withUserConfiguration(Proxied.class).run(context -> {
            context.getBean(DqTemplate.class).add("proxied", "x");
            assertThat(context.getBean(Proxied.class).seen().poll(60, TimeUnit.SECONDS)).isEqualTo("x");
        });
    }

    static class Named {
        final BlockingQueue<String> threads = new LinkedBlockingQueue<>();

        @DqListener(queue = "named", concurrency = "2")
        void handle() {
            threads.add(Thread.currentThread().getName());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"lettuce", "jedis"})
    void listenersRunOnTheExecutorOfThatName(String client, DqServer server) {
        ThreadPoolTaskExecutor mine = new ThreadPoolTaskExecutor();
        mine.setCorePoolSize(8); // concurrency and connections
        mine.setThreadNamePrefix("mine-");
        mine.setDaemon(true);
        runner(client, server)
                .withBean(Named.class)
                .withBean(DqAutoConfiguration.EXECUTOR, ThreadPoolTaskExecutor.class, () -> mine)
                .withBean("another", ThreadPoolTaskExecutor.class, ThreadPoolTaskExecutor::new)
                .run(context -> {
                    context.getBean(DqTemplate.class).add("named", 1);
                    assertThat(context.getBean(Named.class).threads.take()).startsWith("mine-");
                });
    }

    @ParameterizedTest
    @ValueSource(strings = {"lettuce", "jedis"})
    @EnabledForJreRange(min = JRE.JAVA_21)
    void listenersRunOnVirtualThreadsWhereTheApplicationDoes(String client, DqServer server) {
        runner(client, server)
                .withBean(Named.class)
                .withPropertyValues("spring.threads.virtual.enabled=true")
                .run(context -> {
                    context.getBean(DqTemplate.class).add("named", 1);
                    assertThat(context.getBean(Named.class).threads.take()).startsWith("dq-listener-");
                });
    }
}
