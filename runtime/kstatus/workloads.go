package kstatus

func deployment(o object) Status {
	status, wanted := o.at("status"), o.wanted()
	if c := o.condition("Progressing"); text(c, "reason") == "ProgressDeadlineExceeded" {
		return stalled(c.why("it makes no progress"))
	}
	switch updated := count(status, "updatedReplicas"); {
	case !observed(status):
		return waits("its controller has not seen it yet")
	case updated < wanted:
		return waits("%d of %d updated", updated, wanted)
	case count(status, "replicas") > updated:
		return waits("%d old replicas are still there", count(status, "replicas")-updated)
	case count(status, "availableReplicas") < wanted:
		return waits("%d of %d available", count(status, "availableReplicas"), wanted)
	}
	return ready
}

func statefulSet(o object) Status {
	status, wanted := o.at("status"), o.wanted()
	if !observed(status) {
		return waits("its controller has not seen it yet")
	}
	if n := count(status, "readyReplicas"); n < wanted {
		return waits("%d of %d ready", n, wanted)
	}
	if n := count(status, "replicas"); n > wanted {
		return waits("%d replicas too many", n-wanted)
	}
	strategy := object(o.at("spec")).at("updateStrategy")
	if text(strategy, "type") == "OnDelete" {
		return ready // whoever deletes its Pods says when
	}
	must := wanted - count(object(strategy).at("rollingUpdate"), "partition")
	if n := count(status, "updatedReplicas"); n < must {
		return waits("%d of %d updated", n, must)
	}
	return ready
}

func daemonSet(o object) Status {
	status := o.at("status")
	wanted := count(status, "desiredNumberScheduled")
	onDelete := text(object(o.at("spec")).at("updateStrategy"), "type") == "OnDelete"
	switch updated, available := count(status, "updatedNumberScheduled"), count(status, "numberAvailable"); {
	case !observed(status):
		return waits("its controller has not seen it yet")
	case updated < wanted && !onDelete:
		return waits("%d of %d updated", updated, wanted)
	case available < wanted:
		return waits("%d of %d available", available, wanted)
	}
	return ready
}

func replicaSet(o object) Status {
	status, wanted := o.at("status"), o.wanted()
	if c := o.condition("ReplicaFailure"); c.is("True") {
		return waits("%s", c.why("its Pods cannot be made"))
	}
	switch n := count(status, "availableReplicas"); {
	case !observed(status):
		return waits("its controller has not seen it yet")
	case n < wanted:
		return waits("%d of %d available", n, wanted)
	case count(status, "replicas") > wanted:
		return waits("%d replicas too many", count(status, "replicas")-wanted)
	}
	return ready
}

// observed says that the controller of a workload has written its status at least once.
func observed(status map[string]any) bool {
	_, told := number(status, "observedGeneration")
	return told
}

func pod(o object) Status {
	status := o.at("status")
	switch phase := text(status, "phase"); phase {
	case "Succeeded":
		return ready
	case "Failed":
		return stalled(condition(status).why("it has failed"))
	case "Running":
		if c := o.condition("Ready"); !c.is("True") {
			return waits("%s", c.why("it is not ready"))
		}
		return ready
	}
	if c := o.condition("PodScheduled"); c.is("False") {
		return waits("%s", c.why("it is not scheduled"))
	}
	return waits("it has not started yet")
}

// job is ready once it is complete: that is what those wait for that come after it.
func job(o object) Status {
	if c := o.condition("Failed"); c.is("True") {
		return stalled(c.why("it has failed"))
	}
	if o.condition("Complete").is("True") {
		return ready
	}
	if suspended, _ := o.at("spec")["suspend"].(bool); suspended {
		return waits("it is suspended")
	}
	wanted, told := number(o.at("spec"), "completions")
	if !told {
		wanted = 1
	}
	return waits("%d of %d completed", count(o.at("status"), "succeeded"), wanted)
}

func claim(o object) Status {
	switch phase := text(o.at("status"), "phase"); phase {
	case "Bound":
		return ready
	case "Lost":
		return stalled("its volume is lost")
	}
	return waits("it is not bound to a volume")
}

func service(o object) Status {
	if text(o.at("spec"), "type") != "LoadBalancer" {
		return ready
	}
	if list, _ := object(o.at("status")).at("loadBalancer")["ingress"].([]any); len(list) > 0 {
		return ready
	}
	return waits("its load balancer has no address yet")
}

func namespace(o object) Status {
	if phase := text(o.at("status"), "phase"); phase != "Active" {
		return waits("it is not active yet")
	}
	return ready
}

func definition(o object) Status {
	if c := o.condition("NamesAccepted"); c.is("False") {
		return stalled(c.why("its names are taken"))
	}
	if c := o.condition("Established"); !c.is("True") {
		return waits("%s", c.why("it is not established"))
	}
	return ready
}

func apiService(o object) Status {
	if c := o.condition("Available"); !c.is("True") {
		return waits("%s", c.why("it is not available"))
	}
	return ready
}
