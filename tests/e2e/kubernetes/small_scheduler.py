"""Which node a pod is bound to: the first that is ready, wanted by the pod, tolerated, and has enough of everything left."""
import collections
import re

UNITS = {"": 1, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def amount(quantity):
    number, unit = re.fullmatch(r"([\d.]+)(\w*)", str(quantity)).groups()
    return float(number) * UNITS[unit]


def requests_of(pod):
    """What its containers request; init containers come before them, one at a time."""
    total = collections.Counter({"pods": 1})
    def of(container):
        resources = container.get("resources") or {}
        asked = (resources.get("limits") or {}) | (resources.get("requests") or {})
        return {name: amount(quantity) for name, quantity in asked.items()}
    for container in pod["spec"]["containers"]:
        total.update(of(container))
    for container in pod["spec"].get("initContainers") or ():
        total |= collections.Counter(of(container))
    return total


def tolerates(pod, taint):
    for one in pod["spec"].get("tolerations") or ():
        if one.get("effect") not in (None, "", taint["effect"]) or one.get("key") not in (None, "", taint["key"]):
            continue
        if one.get("operator") == "Exists" or one.get("value", "") == taint.get("value", ""):
            return True
    return False


def refusal(node, pod, used):
    """Why the pod cannot be on the node, in the real scheduler's words; None: it can."""
    ready = [c["status"] for c in (node.get("status") or {}).get("conditions") or () if c["type"] == "Ready"]
    if node["spec"].get("unschedulable") or ready != ["True"]:
        return "node(s) were unschedulable"
    labels = node["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in (pod["spec"].get("nodeSelector") or {}).items()):
        return "node(s) didn't match Pod's node affinity"
    for taint in node["spec"].get("taints") or ():
        if taint["effect"] != "PreferNoSchedule" and not tolerates(pod, taint):
            return f"node(s) had taint {{{taint['key']}: {taint.get('value', '')}}}, that the pod didn't tolerate"
    free = node["status"]["allocatable"]
    for name, asked in requests_of(pod).items():
        if used[name] + asked > amount(free.get(name, 0)):
            return f"Insufficient {name}"
    return None


def schedule(nodes, pods):
    """(pod, node or None, why not) of those that wait."""
    used = collections.defaultdict(collections.Counter)
    for pod in pods:
        if pod["spec"].get("nodeName") and pod["status"].get("phase") not in ("Succeeded", "Failed"):
            used[pod["spec"]["nodeName"]].update(requests_of(pod))
    decided = []
    for pod in pods:
        if pod["spec"].get("nodeName") or pod["metadata"].get("deletionTimestamp"):
            continue
        refusals = collections.Counter()
        for node in nodes:
            name = node["metadata"]["name"]
            why = refusal(node, pod, used[name])
            if not why:
                used[name].update(requests_of(pod))
                decided.append((pod, name, ""))
                break
            refusals[why] += 1
        else:
            reasons = ", ".join(f"{count} {why}" for why, count in refusals.items())
            decided.append((pod, None, f"0/{len(nodes)} nodes are available: {reasons}."))
    return decided
