package io.github.redisdq;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** A connection that is opened when it is first needed, and again after {@link #close}. */
final class Wire {
    private static final long NOT_TOLD = -1;
    private static final long LONGEST_PARTING_MS = 100; // a thread may start late

    private final Connector connector;
    private final byte[] key;
    private final Duration patience;
    private final Runnable again;
    private boolean hasConnected;
    private volatile Connector.Line line;
    private volatile Connector.Line left; // the one before, on which the server is late, until there is a new one
    private volatile boolean isCut;
    private volatile boolean isWhole; // connected, with no command that was written in part
    private volatile Object server;
    /** The server refuses DQ.UNBLOCK on this connection. */
    volatile boolean isUnblockRefused;
    /** The server's number of this connection; 0: it is not connected. */
    volatile long clientId;

    /** {@code again}: called when the connection was opened again. */
    Wire(Connector connector, byte[] key, Duration patience, Runnable again) {
        this.connector = connector;
        this.key = key;
        this.patience = patience;
        this.again = again;
    }

    void open() {
        if (line == null && !isCut) {
            connect();
        }
    }

    boolean isOpen() {
        return line != null;
    }

    void send(List<byte[][]> commands) {
        open();
        isWhole = false;
        there().send(commands);
        isWhole = true;
    }

    boolean mayPart() {
        return left != null || line != null && isWhole;
    }

    /**
     * Writes without waiting for replies, just before the connection is closed, and not for long. A server that stands still
     * reads this when it goes on.
     */
    void part(List<byte[][]> commands) {
        Connector.Line late = left;
        Connector.Line there = late == null ? line : late;
        if (there == null || late == null && !isWhole || commands.isEmpty()) {
            return;
        }
        Thread parting = new Thread(() -> Guard.call(() -> there.part(commands)), "dq-parting");
        parting.setDaemon(true);
        parting.start();
        Guard.call(() -> parting.join(LONGEST_PARTING_MS));
    }

    Object read() {
        return there().read();
    }

    /** The open line. Another thread may close it at any time, to end a wait. */
    private Connector.Line there() {
        Connector.Line there = line;
        if (there == null) {
            throw new DqException("the connection was closed");
        }
        return there;
    }

    /** The next replies. */
    List<Object> read(int count) {
        List<Object> replies = new ArrayList<>(count);
        while (replies.size() < count) {
            replies.add(read());
        }
        return replies;
    }

    List<Object> ask(List<byte[][]> commands) {
        send(commands);
        return read(commands.size());
    }

    /** The reply to one command; throws if it is an error. */
    Object ask(Words command) {
        Object reply = ask(Collections.singletonList(command.all())).get(0);
        if (reply instanceof RefusedException said) {
            throw said;
        }
        return reply;
    }

    /**
     * Ends the command that waits on this connection, if it waits by now, by DQ.UNBLOCK on {@code control}. False: that
     * is refused, or cannot be asked, for elsewhere its number may be another client's.
     */
    boolean unblock(Wire control) {
        control.open();
        if (clientId <= 0 || !isBeside(control) || control.isUnblockRefused) {
            return false;
        }
        Object reply = control.ask(Collections.singletonList(new Words("DQ.UNBLOCK").add(clientId).all())).get(0);
        if (!(reply instanceof RefusedException said)) {
            return true;
        }
        if (said.begins("NOPERM")) {
            control.isUnblockRefused = true;
            Guard.warn("DQ.UNBLOCK is refused (" + said.getMessage() + "): connections that wait are closed at the stop");
        }
        return false;
    }

    /** Whether both lead to the same server. */
    private boolean isBeside(Wire other) {
        return server != null && server.equals(other.server);
    }

    /** As {@link #unblock}; if that cannot be done, the connection is closed. */
    void unblockOrClose(Wire control) {
        if (clientId != 0 && !unblock(control)) {
            close();
        }
    }

    private void connect() {
        Connector.Line made = connector.connect(key, patience);
        line = made;
        server = made.server();
        if (isCut) { // cut came first; Jedis would connect again
            made.cut();
            throw new DqException("the connection was closed");
        }
        made.send(Collections.singletonList(new Words("CLIENT").add("ID").all()));
        // If CLIENT ID is forbidden, a connection that waits is closed to end its wait.
        clientId = made.read() instanceof Long id ? id : NOT_TOLD;
        isWhole = true;
        dropLeft();
        if (hasConnected) {
            again.run();
        }
        hasConnected = true;
    }

    /** Closes the connection after an error, but for {@link #part} if the server is late. */
    void fail(Throwable error) {
        if (isWhole && Trouble.isLate(error)) {
            dropLeft();
            left = line;
            line = null;
        }
        close();
    }

    private void dropLeft() {
        Connector.Line late = left;
        left = null;
        if (late != null) {
            late.cut();
        }
    }

    void close() {
        clientId = 0;
        isWhole = false;
        Connector.Line there = line;
        line = null;
        if (there != null) {
            there.cut();
        }
    }

    /** Closes the connection for good: a thread that reads from it gets an exception. */
    void cut() {
        isCut = true;
        dropLeft();
        Connector.Line there = line;
        if (there != null) {
            there.cut();
        }
    }
}
