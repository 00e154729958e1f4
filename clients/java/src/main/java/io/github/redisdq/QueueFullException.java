package io.github.redisdq;

/**
 * The queue has reached its MAXLEN or MAXBYTES; what the command was to add was not added. Other commands of the same
 * call can have added jobs, even in one transaction: then the message says how many.
 */
public final class QueueFullException extends RefusedException {
    QueueFullException(String message, String answer, String id, String argument, String value) {
        super(message, answer, id, argument, value);
    }
}
