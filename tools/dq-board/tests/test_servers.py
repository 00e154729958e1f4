"""Clusters, Sentinels, TLS, and how the board reads servers."""

import json
import os
import pathlib
import re
import subprocess

import demo
import redis
import trustme
from playwright.sync_api import expect
from support import BoardTest, Encrypted, Server, ask, calls, cell, free_port, row, wait_until


class SentinelServer(Server):
    def __init__(self, conf):
        self.conf = conf
        super().__init__(module=False)

    def start(self):
        words = [os.environ["DQ_SERVER"], str(self.conf), "--sentinel", "--port", str(self.port)]
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(words, stdout=log, stderr=log)
        self.client = redis.Redis(port=self.port)
        wait_until("the sentinel answers", self.answers)


class Servers(BoardTest):
    def cluster(self, count):
        """A cluster of two masters, and further nodes without slots."""
        nodes = [self.server("--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-port", str(free_port())) for _ in range(count)]
        self.join(nodes, [(0, 8191), (8192, 16383)])
        return nodes

    @staticmethod
    def join(nodes, slots):
        for node, slots in zip(nodes, slots):
            node.client.execute_command("CLUSTER", "ADDSLOTSRANGE", *slots)
        for node in nodes[1:]:
            nodes[0].client.execute_command("CLUSTER", "MEET", "127.0.0.1", node.port, node.options[-1])
        for node in nodes:
            wait_until("the cluster is whole", lambda it=node: "ok" in str(it.client.cluster("info")["cluster_state"]))
            wait_until("all are known", lambda it=node: it.client.cluster("info")["cluster_known_nodes"] == str(len(nodes)))

    def test_a_cluster_that_fails_over(self):
        """The node that the board was pointed at dies, and its replica takes over: its queues are shown, and actions
        work there."""
        first, other, replica = self.cluster(3)
        replica.client.execute_command("CLUSTER", "REPLICATE", first.client.execute_command("CLUSTER", "MYID"))
        wait_until("the replica is in sync", lambda: replica.client.info("replication").get("master_link_status") == "up")
        first.client.execute_command("DQ.ADD", "bar", "job", "x")
        other.client.execute_command("DQ.ADD", "foo", "job", "x")
        wait_until("the replica has it", lambda: replica.client.info("keyspace").get("db0", {}).get("keys") == 1)
        board = self.board(first, "--allow-actions")
        page = self.window()
        page.goto(board.url)
        for name in ["foo", "bar"]:
            expect(cell(page, name, "ready")).to_have_text("1")
        first.process.kill()
        first.process.wait()
        expect(page.locator("#trouble")).to_contain_text("cannot be reached")
        expect(row(page, "bar")).to_contain_text("not reachable")
        self.assertNotIn("not reachable", row(page, "foo").inner_text())
        expect(cell(page, "foo", "ready")).to_have_text("1")
        replica.client.execute_command("CLUSTER", "FAILOVER", "TAKEOVER")
        wait_until("the replica is a master", lambda: replica.client.info("replication")["role"] == "master")
        wait_until("it serves", lambda: "ok" in str(replica.client.cluster("info")["cluster_state"]))
        replica.client.execute_command("DQ.ADD", "bar", "more", "x")
        expect(cell(page, "bar", "ready")).to_have_text("2")
        expect(page.locator("#trouble")).to_be_hidden()
        page.goto(board.url + "job?queue=0:bar&id=job")
        page.get_by_role("button", name="Cancel").click()
        page.get_by_role("button", name="Cancel it").click()
        expect(page.locator("#said")).to_have_text("Cancelled.")
        self.assertEqual(replica.client.execute_command("DQ.LEN", "bar"), 1)
        self.assertEqual(page.wrong, [])

    def test_a_master_that_nobody_replaces_stays_marked(self):
        nodes = [self.server("--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-port", str(free_port())) for _ in range(3)]
        self.join(nodes, [(0, 5460), (5461, 10922), (10923, 16383)])
        for node, name in zip(nodes, ["bar", "test", "foo"]):
            node.client.execute_command("DQ.ADD", name, "job", "x")
        board = self.board(nodes[0], "--allow-actions")
        page = self.window()
        page.goto(board.url)
        expect(cell(page, "foo", "ready")).to_have_text("1")
        nodes[2].stop()
        wait_until("the others agree", lambda: b"master,fail " in nodes[0].client.execute_command("CLUSTER", "NODES"))
        asked = calls(nodes[0], "cluster|nodes")
        wait_until("the board has asked", lambda: calls(nodes[0], "cluster|nodes") >= asked + 3)
        expect(row(page, "foo")).to_contain_text("not reachable")
        expect(page.locator("#trouble")).to_contain_text("cannot be reached")
        page.goto(board.url + "queue?queue=0:foo")
        expect(page.locator(".queue-head .badge")).to_have_text("not reachable")
        expect(page.locator(".actions button")).to_have_count(0)
        self.assertEqual(page.wrong, [])

    def test_a_replica_offers_no_action(self):
        master, replica = self.server(), self.server()
        master.client.execute_command("DQ.ADD", "q", "job", "x", "AT", 1)
        replica.client.execute_command("REPLICAOF", "127.0.0.1", master.port)
        wait_until("the replica has it", lambda: replica.client.info("keyspace").get("db0", {}).get("keys") == 1)
        page = self.window()
        board = self.board(replica, "--allow-actions")
        page.goto(board.url)
        said = "1 job is ready; who asks for any is not seen on a replica"
        expect(page.locator(".needy li")).to_have_text(re.compile(rf"^q a job has been due for \d+ years; {said}$"))
        self.assertIsNone(json.loads(ask(board.url + "api/scale?queue=q&per=1")[2])["attended"])
        unseen = "What its master delivers is not seen on a replica."
        expect(page.locator("main")).to_contain_text(unseen)
        for tile in ["Delivered a second", "Waiting clients"]:
            expect(page.locator("dl.tile").filter(has_text=tile).locator("dd").first).to_have_text("–")
        page.goto(board.url + "queue?queue=0:q")
        expect(page.locator(".why")).to_have_text(said)
        figures = page.get_by_role("region", name="Figures")
        for told in ["Dead0", "Reserved0clients waiting: not seen here", "Delivered a second–not seen on a replica"]:
            expect(figures.locator("dl.tile").filter(has_text=told)).to_have_text(told)
        expect(page.locator("#server")).to_contain_text("replica, to look at only")
        expect(page.locator("#trouble")).to_be_hidden()
        expect(page.get_by_text(unseen)).to_be_visible()
        expect(page.locator(".readout")).to_contain_text("what was delivered is not known")
        # Even if the chart is there before the board has said that it is one.
        held, asked = [], []
        page.route("**/api/live", lambda route: held.append(route))
        page.route("**/api/look/forecast?*", lambda route: asked.append(route) or len(asked) > 1 or route.continue_())
        page.reload()
        expect(page.locator(".readout")).to_contain_text("1 job already due")
        held[0].continue_()
        expect(page.locator(".readout")).to_contain_text("what was delivered is not known")
        page.unroute_all(behavior="ignoreErrors")
        expect(page.locator(".actions button")).to_have_count(0)
        master.stop()
        expect(page.locator("#trouble")).to_contain_text(f"is a replica and lost its master 127.0.0.1:{master.port} less than a minute ago: its jobs are those of then. A replica delivers nothing itself")
        expect(page.locator("#server")).to_have_attribute("data-tone", "bad")
        replica.client.execute_command("REPLICAOF", "NO", "ONE")
        expect(page.locator(".actions button").first).to_be_visible()
        expect(page.locator("#trouble")).to_be_hidden()
        self.assertEqual(page.wrong, [])

    def test_of_a_replica_that_never_reached_its_master_nothing_is_known(self):
        replica = self.server("--replicaof", "127.0.0.1", str(free_port()))
        page = self.window()
        board = self.board(replica)
        said = "Not known: this replica has not reached its master."
        page.goto(board.url)
        expect(page.locator("#trouble")).to_contain_text("has not reached its master")
        expect(page.locator(".empty")).to_have_text(said)
        expect(page.locator("#sum")).to_have_text("")
        needs = page.get_by_label("What needs a look")
        expect(needs.locator("h2")).to_have_text("What needs a look is not known")
        expect(page.locator("main [data-tone=good]")).to_have_count(0)
        expect(page.locator(".tile dd").first).to_have_text("–")
        for place in ["job?queue=0:q&id=a", "jobs?queue=0:q&state=dead", "recurring?queue=0:q"]:
            page.goto(board.url + place)
            expect(page.locator(".empty")).to_have_text(said)
            expect(page.get_by_text("no such queue")).to_have_count(0)
        self.assertEqual(page.wrong, [])

    def test_all_masters_of_a_cluster_as_one(self):
        nodes = self.cluster(2)
        nodes[0].client.execute_command("DQ.ADD", "bar", "job", "x")
        nodes[1].client.execute_command("DQ.ADD", "foo", "job", "x")
        page = self.window()
        board = self.board(nodes[0], "--allow-actions")
        page.goto(board.url)
        for name in ["foo", "bar"]:
            expect(cell(page, name, "ready")).to_have_text("1")
        expect(page.locator(".tile dd").first).to_have_text("2")
        for name in ["foo", "bar"]:
            page.goto(board.url + f"job?queue=0:{name}&id=job")
            page.get_by_role("button", name="Cancel").click()
            page.get_by_role("button", name="Cancel it").click()
            expect(page.locator("#said")).to_have_text("Cancelled.")

    def test_the_master_that_sentinels_name(self):
        master = self.server()
        replica = self.server("--replicaof", "127.0.0.1", str(master.port))
        wait_until("the replica is in sync", lambda: replica.client.info("replication")["master_link_status"] == "up")
        conf = pathlib.Path(master.folder, "sentinel.conf")
        conf.write_text(f"sentinel monitor shop 127.0.0.1 {master.port} 1\n")
        sentinel = SentinelServer(conf)
        self.addCleanup(sentinel.close)
        master.client.execute_command("DQ.ADD", "before", "job", "x")
        page = self.window()
        board = self.board(master, "--sentinel", f"127.0.0.1:{sentinel.port}", "--master", "shop")
        page.goto(board.url)
        expect(cell(page, "before", "ready")).to_have_text("1")

        def failed_over():
            try:
                sentinel.client.execute_command("SENTINEL", "FAILOVER", "shop")
            except redis.exceptions.ResponseError:
                pass
            return replica.client.info("replication")["role"] == "master"

        wait_until("the replica is master", failed_over)
        replica.client.execute_command("DQ.ADD", "after", "job", "x")
        expect(cell(page, "after", "ready")).to_have_text("1")

    def test_tls_by_a_certificate_that_it_is_told_to_trust(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", "x")
        authority, other = trustme.CA(), trustme.CA()
        proxy = Encrypted(authority.issue_cert("localhost"), server.port)
        self.addCleanup(proxy.close)
        with authority.cert_pem.tempfile() as right, other.cert_pem.tempfile() as wrong:
            for options in [["--tls", "-h", "localhost", "-p", str(proxy.port)], ["-u", f"rediss://localhost:{proxy.port}"]]:
                page = self.window()
                page.goto(self.board(None, *options, "--cacert", right).url)
                expect(cell(page, "q", "ready")).to_have_text("1")
            page = self.window()
            page.goto(self.board(None, *options, "--cacert", wrong).url)
            expect(page.get_by_role("alert").first).to_contain_text("cannot be reached: ")
            expect(page.get_by_role("alert").first).to_contain_text("certificate")

    def test_tabs_that_nobody_sees_leave_their_connection_to_others(self):
        server = self.server()
        server.client.execute_command("DQ.ADD", "q", "job", "x")
        url = self.board(server).url
        window = self.window().context
        first = None
        for _ in range(8):
            page = window.new_page()
            page.goto(url)
            expect(cell(page, "q", "ready")).to_have_text("1")
            page.evaluate("""() => {
                window.away = true;
                Object.defineProperty(document, "hidden", { get: () => window.away });
                document.dispatchEvent(new Event("visibilitychange"));
            }""")
            first = first or page
        server.client.execute_command("DQ.ADD", "q", "other", "x")
        first.evaluate("() => { window.away = false; document.dispatchEvent(new Event('visibilitychange')); }")
        expect(cell(first, "q", "ready")).to_have_text("2")

    def test_many_tabs_are_one_reader(self):
        server = self.server()
        demo.fill(server.client)
        board = self.board(server)
        pages = [self.window() for _ in range(6)]
        for page in pages:
            page.goto(board.url + "queue?queue=0:mails")
            expect(page.locator(".readout")).to_contain_text("already due")
        # The reader's connection, and at most four for questions. (A closed one may be listed a little longer.)
        wait_until("six connections with ours", lambda: len(server.client.client_list()) <= 6)
