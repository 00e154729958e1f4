package io.github.redisdq;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** A connection that is opened when it is first needed, and again after {@link #close}. */
final class Wire {
    private static final long NOT_TOLD = -1;

    private final Connector connector;
    private final byte[] key;
    private final Duration patience;
    private final Runnable again;
    private boolean hasConnected;
    private volatile Connector.Line line;
    private volatile boolean isCut;
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
        if (line == null) {
            connect();
        }
    }

    boolean isOpen() {
        return line != null;
    }

    void send(List<byte[][]> commands) {
        open();
        there().send(commands);
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
        if (reply instanceof ServerException said) {
            throw said;
        }
        return reply;
    }

    /**
     * Ends the command that waits on this connection; if that is forbidden, by closing it. {@code control} is another
     * connection.
     */
    void unblock(Wire control) {
        long id = clientId;
        byte[][] unblock = new Words("CLIENT").add("UNBLOCK").add(id).all();
        if (id == NOT_TOLD || id > 0 && control.ask(Collections.singletonList(unblock)).get(0) instanceof ServerException) {
            close();
        }
    }

    private void connect() {
        Connector.Line made = connector.connect(key, patience);
        line = made;
        if (isCut) { // cut came first
            made.cut();
        }
        made.send(Collections.singletonList(new Words("CLIENT").add("ID").all()));
        // If CLIENT ID is forbidden, a connection that waits is closed to end its wait.
        clientId = made.read() instanceof Long id ? id : NOT_TOLD;
        if (hasConnected) {
            again.run();
        }
        hasConnected = true;
    }

    void close() {
        clientId = 0;
        Connector.Line there = line;
        line = null;
        if (there != null) {
            there.cut();
        }
    }

    /** Closes the connection for good: a thread that reads from it gets an exception. */
    void cut() {
        isCut = true;
        Connector.Line there = line;
        if (there != null) {
            there.cut();
        }
    }
}
