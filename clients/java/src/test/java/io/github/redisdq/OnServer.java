package io.github.redisdq;

import static org.junit.jupiter.api.Assertions.assertNull;

import io.github.redisdq.testing.DqExtension;
import io.github.redisdq.testing.DqServer;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtendWith;

/** Tests with a queue each, on a server whose clock they move. */
@ExtendWith(DqExtension.class)
abstract class OnServer {
    DqQueue queue;

    @BeforeEach
    void open(DqServer server) {
        queue = server.queue("q");
    }

    @AfterEach
    void close() {
        queue.close();
    }

    /** What is logged meanwhile. */
    static String log(Guard.Call call) {
        PrintStream before = System.err;
        ByteArrayOutputStream log = new ByteArrayOutputStream();
        System.setErr(new PrintStream(log, true, StandardCharsets.UTF_8));
        try {
            assertNull(Guard.call(call));
        } finally {
            System.setErr(before);
        }
        return log.toString(StandardCharsets.UTF_8);
    }
}
