package io.github.redisdq;

/** The queue has reached its MAXLEN or MAXBYTES; nothing was added. */
public final class QueueFullException extends ServerException {
    public QueueFullException(String message) {
        super(message);
    }
}
