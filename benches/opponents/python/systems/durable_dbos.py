"""DBOS on PostgreSQL: workflows called by ten threads, as its queues look for work once a second only."""

import logging
from concurrent.futures import ThreadPoolExecutor

from dbos import DBOS, SetWorkflowID

from systems.durable import AT_ONCE, Durable


class System(Durable):
    def begin(self):
        DBOS(config={
            "name": "bench",
            "system_database_url": f"postgresql://postgres@127.0.0.1:{self.port}/postgres",
            "run_admin_server": False,
        })
        logging.getLogger("dbos").setLevel(logging.ERROR)

        @DBOS.step()
        def one_step():
            return self.step_done()

        @DBOS.workflow()
        def with_steps(steps):
            for _ in range(steps):
                one_step()
            self.job_done()

        @DBOS.workflow()
        def with_signal():
            self.waits()
            DBOS.recv("signed", timeout_seconds=60)
            self.resumed()

        self.with_steps, self.with_signal = with_steps, with_signal
        self.threads = ThreadPoolExecutor(AT_ONCE)
        DBOS.launch()

    def start(self, id, steps):
        def call():
            with SetWorkflowID(id):
                self.with_steps(steps)

        self.threads.submit(call)

    def start_waiting(self, id):
        with SetWorkflowID(id):
            DBOS.start_workflow(self.with_signal)

    def signal(self, id):
        DBOS.send(id, "by Ada", "signed")
