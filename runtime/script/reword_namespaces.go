package script

// namespaceHint is about members of namespaces: "json.loads".
func namespaceHint(name string) string {
	switch name {
	case "json.loads", "json.load", "json.parse", "json.unmarshal", "json.Unmarshal":
		return "use json.decode(text)"
	case "json.dumps", "json.dump", "json.stringify", "json.marshal", "json.Marshal":
		return "use json.encode(x)"
	case "yaml.load", "yaml.safe_load", "yaml.loads", "yaml.full_load", "yaml.parse", "yaml.unmarshal":
		return "use yaml.decode(text)"
	case "yaml.load_all", "yaml.safe_load_all":
		return "use yaml.decode_all(text)"
	case "yaml.dump", "yaml.safe_dump", "yaml.dumps", "yaml.stringify", "yaml.marshal", "yaml.dump_all", "yaml.safe_dump_all":
		return "use yaml.encode(x)"
	case "re.compile":
		return "there is nothing to compile: re.search(pattern, text)"
	case "re.findall", "re.finditer":
		return "use re.find_all(pattern, text)"
	case "re.fullmatch":
		return `write re.match(pattern + "$", text)`
	case "re.subn", "re.replace":
		return "use re.sub(pattern, repl, text)"
	case "re.test", "re.find":
		return "use re.search(pattern, text)"
	case "re.IGNORECASE", "re.I":
		return `begin the pattern with (?i)`
	case "re.MULTILINE", "re.M":
		return `begin the pattern with (?m)`
	case "re.DOTALL", "re.S":
		return `begin the pattern with (?s)`
	case "re.escape":
		return `write \Q before the text, and \E after it`
	case "time.sleep":
		return `use requeue("30s"): it runs the hook again, and holds nothing up`
	case "time.strftime", "time.strptime":
		return `use time.now().format("2006-01-02"), time.parse_time(text, format = "2006-01-02")`
	case "time.gmtime", "time.localtime", "time.monotonic", "time.perf_counter", "time.utcnow", "time.time_ns", "time.datetime":
		return "use time.now(), and .unix of it"
	case "time.day", "time.days":
		return "write 24 * time.hour"
	case "time.week", "time.weeks":
		return "write 7 * 24 * time.hour"
	case "time.timedelta", "time.duration":
		return `use time.parse_duration("5m")`
	case "math.inf":
		return `use float("inf")`
	case "math.nan":
		return `use float("nan")`
	case "math.trunc":
		return "use int(x)"
	case "math.abs", "math.max", "math.min":
		return "it is there without math: abs(x), max(a, b), min(a, b)"
	case "math.log10", "math.log2":
		return "use math.log(x, 10)"
	case "math.fsum", "math.sum", "math.prod":
		return "add up in a for loop: total += x"
	case "math.isnan":
		return "write x != x"
	case "base64.b64encode", "base64.encodebytes", "base64.standard_b64encode":
		return "use base64.encode(text)"
	case "base64.b64decode", "base64.decodebytes", "base64.standard_b64decode":
		return "use base64.decode(text)"
	case "base64.urlsafe_b64encode":
		return "use base64.url_encode(text)"
	case "base64.urlsafe_b64decode":
		return "use base64.url_decode(text)"
	case "hash.new", "hash.sha512", "hash.blake2b":
		return "use hash.sha256(text)"
	case "random.randint", "random.randrange":
		return "use random.int(1, 6), both included"
	case "random.random", "random.uniform":
		return "write random.int(0, 999999) / 1000000"
	case "random.choice":
		return "write xs[random.int(0, len(xs) - 1)]"
	case "random.shuffle", "random.sample":
		return "take random.int(0, len(xs) - 1) for each place"
	case "random.token_hex", "random.token_urlsafe", "random.choices":
		return "use random.string(32)"
	case "random.uuid4":
		return "use random.uuid()"
	case "log.exception", "log.critical", "log.fatal":
		return "use log.error(msg), and fail(msg) to end the run"
	case "log.warning":
		return "use log.warn(msg)"
	case "http.post", "http.put", "http.patch", "http.delete":
		return `use http.send("POST", url, json = …) once the run has succeeded, http.request at once`
	case "k8s.update", "k8s.replace", "k8s.upsert", "k8s.create_or_update":
		return "use k8s.apply(obj)"
	case "k8s.scale":
		return `use k8s.patch(ref, merge = {"spec": {"replicas": 3}})`
	case "k8s.label", "k8s.annotate":
		return `use k8s.patch(ref, merge = {"metadata": {"labels": {…}}})`
	case "k8s.wait":
		return `use requeue("30s"), or a k8s.watch of the object`
	case "metrics.inc", "metrics.increment", "metrics.counter", "metrics.count":
		return "use metrics.add(name, 1)"
	case "metrics.gauge":
		return "use metrics.set(name, value)"
	case "metrics.histogram", "metrics.summary":
		return "use metrics.observe(name, value)"
	case "values.update":
		return `use values.set("path", value)`
	case "values.items", "values.keys":
		return `use values.get("path", {})`
	case "values.delete", "values.unset", "values.pop":
		return `use values.remove("path")`
	case "tls.expiry", "tls.expires", "tls.not_after", "tls.expiration":
		return "use tls.info(pem).not_after, a time; in the data of a Secret pem is base64.decode(text)"
	case "tls.parse", "tls.read", "tls.decode", "tls.load", "tls.x509", "tls.certificate", "tls.inspect":
		return "use tls.info(pem), which has .not_after, .dns and more; in the data of a Secret pem is base64.decode(text)"
	case "ctx.values", "ctx.config":
		return `use values.get("path"), config.get("path")`
	}
	return ""
}

// CallHint says what of a namespace is called, when somebody calls the namespace itself.
func CallHint(namespace string) string {
	switch namespace {
	case "log":
		return "write log.info(msg)"
	case "values", "config":
		return "write " + namespace + `.get("path"), ` + namespace + `.set("path", value)`
	case "json", "yaml":
		return "write " + namespace + ".decode(text), " + namespace + ".encode(x)"
	case "time":
		return "write time.now()"
	case "hash":
		return "write hash.sha256(text)"
	case "random":
		return "write random.int(1, 6), random.string(32)"
	case "base64":
		return "write base64.encode(text), base64.decode(text)"
	case "http":
		return "write http.get(url)"
	case "re":
		return "write re.search(pattern, text)"
	case "metrics":
		return "write metrics.set(name, value)"
	}
	return "call what it has: " + namespace + ".…(…)"
}
