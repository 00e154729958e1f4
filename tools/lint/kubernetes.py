"""Checks manifests against the schemas of Kubernetes that come with kubernetes-validate, without network.

    kubernetes.py file.yaml...
"""

import sys
from pathlib import Path

import jsonschema
import kubernetes_validate
import yaml

VERSION = "1.31"
TEXT = {"type": "string", "minLength": 1}


def strict(fields, needed):
    return {"type": "object", "properties": fields, "required": needed, "additionalProperties": False}


# The fields of KEDA that we use: https://keda.sh/docs/2.18/reference/scaledobject-spec and scalers/metrics-api.
METRICS_API = strict(
    {"url": {"type": "string", "pattern": "^https?://[^/]+/"}, "valueLocation": TEXT, "targetValue": {"type": "string", "pattern": r"^\d+(\.\d+)?$"}, "authMode": {"enum": ["apiKey", "basic", "tls", "bearer"]}},
    ["url", "valueLocation", "targetValue"],
)
TRIGGER = strict({"type": {"const": "metrics-api"}, "metadata": METRICS_API, "authenticationRef": strict({"name": TEXT}, ["name"])}, ["type", "metadata"])
COUNT = {"type": "integer", "minimum": 0}
KEDA = {
    "ScaledObject": strict(
        {"scaleTargetRef": strict({"name": TEXT, "kind": TEXT}, ["name"]), "minReplicaCount": COUNT, "maxReplicaCount": COUNT, "pollingInterval": COUNT, "cooldownPeriod": COUNT, "triggers": {"type": "array", "minItems": 1, "items": TRIGGER}},
        ["scaleTargetRef", "triggers"],
    ),
    "TriggerAuthentication": strict({"secretTargetRef": {"type": "array", "items": strict({"parameter": {"enum": ["token", "apiKey", "username", "password"]}, "name": TEXT, "key": TEXT}, ["parameter", "name", "key"])}}, ["secretTargetRef"]),
}


def wrong(manifest):
    """The error in a manifest; None if it is valid."""
    try:
        if manifest.get("apiVersion") == "keda.sh/v1alpha1":
            schema = strict({"apiVersion": TEXT, "kind": {"enum": list(KEDA)}, "metadata": strict({"name": TEXT}, ["name"]), "spec": KEDA.get(manifest.get("kind"), {})}, ["kind", "metadata", "spec"])
            jsonschema.validate(manifest, schema)
        else:
            kubernetes_validate.validate(manifest, VERSION, strict=True)
    except (jsonschema.ValidationError, kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as error:
        return str(getattr(error, "message", error))
    return None


def main(paths):
    failed = False
    for path in paths:
        found = list(yaml.safe_load_all(Path(path).read_text(encoding="utf-8")))
        if not found:
            print(f"{path}: no manifests")
            failed = True
        for manifest in found:
            why = wrong(manifest)
            if why:
                print(f"{path}: {manifest.get('kind')} {manifest.get('metadata', {}).get('name')}: {why}")
                failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
