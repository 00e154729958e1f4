package io.github.redisdq;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Reaches the server by a client library. {@link JedisConnector} is one; others may be written. */
public interface Connector extends AutoCloseable {
    /** The only command whose key is not its second word. */
    byte[] EVAL = {'E', 'V', 'A', 'L'};

    /**
     * Sends commands in as few round trips as it can, and returns their replies: null, Long, byte[], List or Map. An
     * error of the server is a {@link RefusedException} in place of the reply. It follows redirections of a cluster.
     * {@code patience} is how long the slowest reply may take; null: the client's own timeout.
     */
    List<Object> call(List<byte[][]> commands, Duration patience);

    /** As {@link #call}, for commands without a key, on the server that has this one. */
    default List<Object> callAt(byte[] key, List<byte[][]> commands) {
        Line line = connect(key, Duration.ofSeconds(5));
        try {
            line.send(commands);
            List<Object> replies = new ArrayList<>();
            while (replies.size() < commands.size()) {
                replies.add(line.read());
            }
            return replies;
        } finally {
            line.cut();
        }
    }

    /** Which word of a command is its key, which decides the node of a cluster that gets it. */
    static int keyAt(byte[][] words) {
        return Arrays.equals(words[0], EVAL) ? 3 : 1;
    }

    /** The key of a command. */
    static byte[] keyOf(byte[][] words) {
        return words[keyAt(words)];
    }

    /** Opens a separate connection to the server that has the key. Nobody else may use it. */
    Line connect(byte[] key, Duration patience);

    /** Returns equal objects for two keys if one connection can wait for both. */
    Object place(byte[] key);

    @Override
    void close();

    /**
     * One connection, for raw commands and replies. Any thread may call {@link #part} and {@link #cut}; all else is for
     * one thread at a time.
     */
    interface Line {
        /** Sends all in one write, if they fit. */
        void send(List<byte[][]> commands);

        /** The next reply; see {@link Connector#call}. */
        Object read();

        /**
         * As {@link #send}, but by any thread, also while another one reads: the last commands before {@link #cut}. They
         * are written when it returns, and their replies are not read.
         */
        default void part(List<byte[][]> commands) {
            send(commands);
        }

        /** The server that the connection leads to: equal for connections to the same one; null: not known. */
        default Object server() {
            return null;
        }

        /** Closes the connection at once: a thread that reads from it gets an exception. */
        void cut();
    }
}
