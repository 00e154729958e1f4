package io.github.redisdq;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;

/** How a client library reaches the server. {@link JedisConnector} is one; others may be written. */
public interface Connector extends AutoCloseable {
    /** The one command whose key is not its second word. */
    byte[] EVAL = {'E', 'V', 'A', 'L'};

    /**
     * Sends the commands in as few round trips as it can, and gives their answers: null, Long, byte[], List or Map; an
     * error of the server is a {@link ServerException} in its place. Follows redirections of a cluster. {@code patience}
     * is for the slowest answer; null: the client's own.
     */
    List<Object> call(List<byte[][]> commands, Duration patience);

    /** Which word of a command is its key, by which it is sent to the right node of a cluster. */
    static int keyAt(byte[][] words) {
        return Arrays.equals(words[0], EVAL) ? 3 : 1;
    }

    /** That word. */
    static byte[] keyOf(byte[][] words) {
        return words[keyAt(words)];
    }

    /** A connection of its own to where the key is. It must not be the one of anybody else. */
    Line connect(byte[] key, Duration patience);

    /** Equal where one connection can wait for both keys. */
    Object place(byte[] key);

    @Override
    void close();

    /** One connection, used in the raw. Any thread may call {@link #cut}; the rest belongs to one at a time. */
    interface Line {
        /** All in one write, where it fits. */
        void send(List<byte[][]> commands);

        /** The next answer; see {@link Connector#call}. */
        Object read();

        /** Ends it at once: whoever reads from it is woken by an exception. */
        void cut();
    }
}
