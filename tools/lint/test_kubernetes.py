"""The check of the manifests finds errors."""

import copy
import unittest
from pathlib import Path

import kubernetes
import yaml

FOLDER = Path(__file__).resolve().parents[2] / "examples/kubernetes"


class Kubernetes(unittest.TestCase):
    def of(self, kind):
        texts = [path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.yaml"))]
        found = [it for text in texts for it in yaml.safe_load_all(text) if it["kind"] == kind]
        return copy.deepcopy(found[0])

    def test_what_is_wrong_is_found(self):
        def change(kind, how):
            manifest = self.of(kind)
            self.assertIsNone(kubernetes.wrong(manifest))
            how(manifest)
            self.assertIsNotNone(kubernetes.wrong(manifest), manifest)

        change("Deployment", lambda it: it["spec"].pop("selector"))
        change("Deployment", lambda it: it["spec"].update(replica=1))
        change("StatefulSet", lambda it: it["spec"]["template"]["spec"]["containers"][0].update(args="text"))
        change("Service", lambda it: it["spec"]["ports"][0].update(port="x"))
        change("ScaledObject", lambda it: it["spec"]["triggers"][0]["metadata"].pop("valueLocation"))
        change("ScaledObject", lambda it: it["spec"]["triggers"][0].update(type="redis"))
        change("TriggerAuthentication", lambda it: it["spec"]["secretTargetRef"][0].update(parameter="secret"))
        change("ScaledObject", lambda it: it.update(kind="Scaled"))


if __name__ == "__main__":
    unittest.main()
