package io.github.redisdq.spring;

import io.github.redisdq.DqException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;

/** What a template sends when the transaction of this thread has committed. */
final class AfterCommit implements TransactionSynchronization {
    private static final Logger LOG = LoggerFactory.getLogger(AfterCommit.class);

    private record Action(String otherwise, Runnable run) {}

    private final Object template;
    private final List<Action> actions = new ArrayList<>();
    private final Map<Object, Integer> savepoints = new HashMap<>();

    private AfterCommit(Object template) {
        this.template = template;
    }

    /**
     * Adds an action. False: there is no transaction. {@code otherwise}: what is wrong if the action cannot be sent
     * then.
     */
    static boolean later(Object template, String otherwise, Runnable action) {
        boolean isInside = TransactionSynchronizationManager.isSynchronizationActive()
                && TransactionSynchronizationManager.isActualTransactionActive();
        if (isInside) {
            of(template).actions.add(new Action(otherwise, action));
        }
        return isInside;
    }

    private static AfterCommit of(Object template) {
        for (TransactionSynchronization each : TransactionSynchronizationManager.getSynchronizations()) {
            if (each instanceof AfterCommit there && there.template == template) {
                return there;
            }
        }
        AfterCommit made = new AfterCommit(template);
        TransactionSynchronizationManager.registerSynchronization(made);
        return made;
    }

    @Override
    public void savepoint(Object savepoint) {
        savepoints.put(savepoint, actions.size());
    }

    @Override
    public void savepointRollback(Object savepoint) {
        int count = savepoints.getOrDefault(savepoint, 0);
        actions.subList(Math.min(count, actions.size()), actions.size()).clear();
    }

    @Override
    public void afterCommit() {
        send();
    }

    /** Sends what was added after the commit, by another synchronization. */
    @Override
    public void afterCompletion(int status) {
        if (status == STATUS_COMMITTED) {
            send();
        } else if (status == STATUS_UNKNOWN) {
            actions.forEach(each -> LOG.warn("whether the transaction has committed is not known: {}", each.otherwise));
        }
        actions.clear();
    }

    private void send() {
        while (!actions.isEmpty()) {
            Action next = actions.remove(0);
            try {
                next.run.run();
            } catch (RuntimeException error) {
                actions.forEach(each -> LOG.error("the transaction has committed, but {}, as the server could not be told before", each.otherwise));
                actions.clear();
                throw new DqException("the transaction has committed, but " + next.otherwise + ": " + error.getMessage(), error);
            }
        }
    }
}
