import static java.nio.charset.StandardCharsets.UTF_8;

import org.springframework.core.NestedExceptionUtils;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.RedisCallback;
import org.springframework.data.redis.core.StringRedisTemplate;

/** What docs/clients.md says that a template's execute cannot. */
public class Template {
    static StringRedisTemplate template;

    static Object execute(String command, String... words) {
        byte[][] raw = java.util.stream.Stream.of(words).map(word -> word.getBytes(UTF_8)).toArray(byte[][]::new);
        return template.execute((RedisCallback<Object>) it -> it.execute(command, raw));
    }

    static void check(boolean isTrue) {
        if (!isTrue) {
            throw new AssertionError();
        }
    }

    public static void main(String[] args) {
        var factory = new LettuceConnectionFactory(LettuceConnectionFactory.createRedisConfiguration("redis://localhost"));
        factory.start();
        template = new StringRedisTemplate(factory);
        check(new String((byte[]) execute("DQ.ADD", "mails", "welcome:ann", "Dear Ann"), UTF_8).equals("welcome:ann"));
        check(execute("DQ.ADD", "mails", "welcome:ann", "Dear Ann") == null);
        for (String command : new String[] {"DQ.POP", "DQ.LEN", "DQ.STATS"}) {
            try {
                execute(command, "mails");
                throw new AssertionError(command);
            } catch (RuntimeException error) {
                check(NestedExceptionUtils.getRootCause(error) instanceof UnsupportedOperationException);
            }
        }
        factory.destroy();
    }
}
