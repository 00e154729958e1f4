package io.github.redisdq;

import java.util.ArrayList;
import java.util.List;

/** Stacks without the library's insides. */
final class Frames {
    private static final String OURS = "io.github.redisdq.";
    private static final List<String> JAVAS = List.of("java.", "javax.", "jdk.", "sun.");
    private static final int MOST_CAUSES = 10;

    private Frames() {}

    /** The error, whose stack, and its causes', has one frame of the library: the method that the program called. */
    static <T extends Throwable> T trimmed(T error) {
        Throwable each = error;
        for (int n = 0; n < MOST_CAUSES && each != null; n++) {
            StackTraceElement[] before = each.getStackTrace();
            List<StackTraceElement> after = trimmed(before);
            if (after.size() < before.length) {
                each.setStackTrace(after.toArray(StackTraceElement[]::new));
            }
            each = each.getCause();
        }
        return error;
    }

    private static List<StackTraceElement> trimmed(StackTraceElement[] frames) {
        List<StackTraceElement> kept = new ArrayList<>(frames.length);
        boolean hasOwn = false;
        int at = 0;
        while (at < frames.length) {
            int end = endOfOwn(frames, at);
            if (end == at) {
                kept.add(frames[at++]);
            } else {
                if (!hasOwn) {
                    kept.add(frames[end - 1]);
                    hasOwn = true;
                }
                at = end;
            }
        }
        return kept;
    }

    /** Where the frames of the library end that begin here, with what they call of Java; here, if none do. */
    private static int endOfOwn(StackTraceElement[] frames, int from) {
        int end = from;
        for (int at = from; at < frames.length; at++) {
            String name = frames[at].getClassName();
            if (name.startsWith(OURS)) {
                end = at + 1;
            } else if (end == from || JAVAS.stream().noneMatch(name::startsWith)) {
                break;
            }
        }
        return end;
    }
}
