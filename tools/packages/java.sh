#!/bin/sh
# The Java library, dq-redisson and Spring Boot's starter as a Maven repository serves them: jar, sources, javadoc and POM, with their
# checksums.
#   java.sh build FOLDER          puts them there, as FOLDER/maven/<group>/dq-redis/...
#   java.sh check FOLDER WORK     a project in WORK gets the library from there into a clean local repository, and runs the
#                                 README's first block against the server at DQ_URL
set -eu
cd "$(dirname "$0")/../../clients/java"
version=$(sed -n 's/^  <version>\(.*\)<\/version>/\1/p' pom.xml)
maven() { mvn -q -B -Dstyle.color=never "$@"; }

build() {
    repository=$(cd "$1" && pwd)/maven
    out=$(mktemp -d)
    rm -rf "$repository"
    # Javadoc's run is too short to be worth the JVM's slower compiler.
    maven -Ddq.target="$out" -Dmaven.test.skip=true -DaltDeploymentRepository="packages::file://$repository" \
        -DadditionalJOption=-J-XX:TieredStopAtLevel=1 -f all.xml -pl :dq-redis,:dq-redisson,:dq-spring-boot-starter \
        package source:jar-no-fork javadoc:jar deploy:deploy
    rm -rf "$out"
    for name in dq-redis dq-redisson dq-spring-boot-starter; do
        for kind in .jar -sources.jar -javadoc.jar .pom; do
            ls "$repository/io/github/redis-dq/$name/$version/$name-$version$kind" >/dev/null
        done
        describes "$repository/io/github/redis-dq/$name/$version/$name-$version"
    done
}

# The jar contains the licence, the name of the module and the version, and the POM names the project.
describes() { # the jar's path without its ending
    inside=$(mktemp -d)
    (cd "$inside" && jar xf "$1.jar" META-INF)
    cmp "$inside/META-INF/LICENSE" ../../LICENSE
    grep -q "^Automatic-Module-Name: io.github.redisdq" "$inside/META-INF/MANIFEST.MF"
    grep -q "^Implementation-Version: $version" "$inside/META-INF/MANIFEST.MF"
    for word in url licenses developers scm; do
        grep -q "<$word>" "$1.pom"
    done
    rm -r "$inside"
}

dependency() { # group, artifact, POM: in the version that is named there
    pinned=$(sed -n "/<artifactId>$2</{n;s/ *<version>\(.*\)<\/version>/\1/p;}" "$3")
    printf '    <dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version></dependency>\n' "$1" "$2" "$pinned"
}

# The POM of the README, with the additions that the check needs.
project() { # repository
    cat >"$2.more" <<POM
  <repositories>
    <repository><id>packages</id><url>file://$1</url></repository>
    <repository><id>fetched</id><url>file://$HOME/.m2/repository</url></repository>
  </repositories>
  <pluginRepositories>
    <pluginRepository><id>fetched</id><url>file://$HOME/.m2/repository</url></pluginRepository>
  </pluginRepositories>
POM
    {
        dependency io.github.redis-dq dq-redisson redisson/pom.xml
        dependency org.redisson redisson redisson/pom.xml
        dependency io.lettuce lettuce-core pom.xml
    } >"$2.connectors"
    sed -n '/^```xml$/,/^```$/p' README.md | sed '/^```/d' |
        sed -e "/<version>1<\/version>/r $2.more" -e "/^  <dependencies>/r $2.connectors" \
            -e 's|^    <plugins>|&<plugin><artifactId>maven-dependency-plugin</artifactId><version>3.8.1</version></plugin>|' >"$2"
    rm "$2.more" "$2.connectors"
}

# The job is due now, and the worker stops when the queue is empty.
program() {
    sed -n '/^```java$/,/^```$/p' README.md | sed '1d; /^```$/,$d' |
        sed 's/"redis:\/\/localhost"/System.getenv("DQ_URL")/; s/Duration.ofMinutes(30)/Duration.ZERO/
            s/^ *worker.run();/new Thread(() -> { while (queue.len() > 0) Thread.yield(); worker.stop(); }).start();\n&/'
}

# A job through each connector, with clients made by the program itself.
connectors() {
    cat <<'PROGRAM'
import io.github.redisdq.*;
import io.github.redisdq.redisson.RedissonConnector;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisURI;
import org.redisson.Redisson;
import org.redisson.config.Config;

public class Connectors {
    static void run(Connector connector, String name) {
        try (DqQueue queue = DqQueue.on(connector, name)) {
            queue.add(17, JobOptions.withId("a"));
            Worker[] worker = new Worker[1];
            worker[0] = Worker.on(queue).handler(Handler.of(Integer.class, (job, data) -> worker[0].stop())).build();
            worker[0].run();
            if (queue.get("a") != null) {
                throw new IllegalStateException(name);
            }
        }
    }

    public static void main(String[] words) {
        String url = System.getenv("DQ_URL");
        RedisClient lettuce = RedisClient.create();
        run(LettuceConnector.of(lettuce, RedisURI.create(url)), "lettuce");
        lettuce.shutdown();
        Config config = new Config();
        config.useSingleServer().setAddress(url);
        var redisson = Redisson.create(config);
        run(RedissonConnector.of(redisson), "redisson");
        redisson.shutdown();
    }
}
PROGRAM
}

# Uses a local repository of its own, and as a second one what was downloaded before.
check() {
    mkdir -p "$2/src/main/java"
    project "$(cd "$1" && pwd)/maven" "$2/pom.xml"
    program >"$2/src/main/java/Orders.java"
    connectors >"$2/src/main/java/Connectors.java"
    cd "$2"
    maven -Dmaven.repo.local="$2/repository" compile dependency:build-classpath -Dmdep.outputFile=path -Dmdep.includeScope=runtime
    java -cp "target/classes:$(cat path)" Orders >said
    grep -x 'closed order 17' said
    java -cp "target/classes:$(cat path)" Connectors
}

"$@"
