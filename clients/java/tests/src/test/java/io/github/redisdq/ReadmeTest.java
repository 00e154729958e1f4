package io.github.redisdq;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticCollector;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The README's code is Java, and uses nothing that is not there. */
class ReadmeTest {
    private static final String AROUND = """
            import static org.junit.jupiter.api.Assertions.assertEquals;
            import io.github.redisdq.*;
            import io.github.redisdq.redisson.*;
            import io.github.redisdq.testing.*;
            import java.time.Duration;
            import org.junit.jupiter.api.Test;
            import org.junit.jupiter.api.extension.ExtendWith;
            import org.redisson.api.*;
            import java.util.List;
            import java.util.concurrent.TimeUnit;
            import org.slf4j.MDC;

            abstract class Around {
                record Order(int number) {}
                record Customer(String name) {}
                static class Shop {
                    Shop(DqQueue queue) {}
                    void startTrial(String customer) {}
                    Worker worker() { return null; }
                }
                Handler<Order> close;
                DqQueue queue;
                RedissonClient redisson;
                abstract void closeOrder(Order order);
                abstract void remind(Customer customer);
                abstract void serveRequests();
                abstract void report();
                abstract String charge(Order order, String key);
                abstract void ship(Order order, String signedBy);
                abstract void refund(String receipt);
            """;

    private static String program(List<String> blocks) {
        StringBuilder out = new StringBuilder(AROUND);
        for (int n = 0; n < blocks.size(); n++) {
            String block = blocks.get(n);
            out.append(block.startsWith("@") ? block : "void block" + n + "() throws Exception {\n" + block + "}\n");
        }
        return out.append("}\n").toString();
    }

    private static List<String> problems(String program, Path folder) {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        DiagnosticCollector<JavaFileObject> found = new DiagnosticCollector<>();
        JavaFileObject source = new SimpleJavaFileObject(URI.create("string:///Around.java"), JavaFileObject.Kind.SOURCE) {
            @Override
            public CharSequence getCharContent(boolean ignored) {
                return program;
            }
        };
        List<String> options = List.of("-d", folder.toString(), "-cp", System.getProperty("java.class.path"), "-proc:none");
        compiler.getTask(null, null, found, options, null, List.of(source)).call();
        List<String> problems = new ArrayList<>();
        for (Diagnostic<?> each : found.getDiagnostics()) {
            if (each.getKind() == Diagnostic.Kind.ERROR) {
                problems.add(each.toString());
            }
        }
        return problems;
    }

    @Test
    void itsCodeCompiles(@TempDir Path folder) throws IOException {
        String text = Files.readString(Path.of("../README.md")).replace("\n  ```", "\n```");
        List<String> blocks = Pattern.compile("```java\n(.*?)```", Pattern.DOTALL).matcher(text).results()
                .map((MatchResult each) -> each.group(1))
                .filter(each -> !each.contains("void main(")) // tests/blocks runs it
                .toList();
        assertTrue(blocks.size() >= 5, blocks.toString());
        assertEquals(List.of(), problems(program(blocks), folder));
        assertEquals(1, problems(program(List.of("queue.noSuchMethod();\n")), folder).size());
    }
}
