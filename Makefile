# Everything here needs Go and GNU make, nothing else. Start with: make run

MODULE := github.com/starling-operator/starling

# One set of flags for all builds: what Starling shares with devcluster and with
# the tests (three packages in four) is then compiled once. Without DWARF that is an
# eighth faster; stack traces and profiles need none. Nobody waits for functions of
# devcluster's API server to be inlined, but everybody for its first build: without
# inlining Kubernetes' own packages compile a quarter faster. A checkout owned by
# another user, as in CI containers, stops a build that asks git for the revision.
export GOFLAGS := -trimpath -buildvcs=false -gcflags=all=-dwarf=false -gcflags=k8s.io/kubernetes/...=-l $(GOFLAGS)
export CGO_ENABLED := 0

# go test gives up after ten minutes, which a slow machine may need for what takes two here.
TEST     := test -count=1 -timeout=40m
TOOL     := go tool -modfile=$(CURDIR)/tools/go.mod
FUZZTIME ?= 30s
FUZZ     ?=
SEEDS    ?= 10
ORDERS   ?= 5000
SEED     ?= 1
FAULTS   ?= 10
OLDER    ?=
RUN      ?=
PKG      ?=
SINCE    ?= HEAD
CHAOS    ?= 3m
SOAK     ?= 10m
VULNDB   ?= https://vuln.go.dev
# Of make image.
BASE        ?= scratch
PLATFORMS   ?= linux/amd64,linux/arm64
VERSION     ?=
MODULES     ?=
PUSH        ?=
COMPRESSION ?= gzip

# The race detector needs a C compiler.
HAVE_CC = $(shell command -v "$$(CGO_ENABLED=1 go env CC)")
UNIT    = $(filter-out $(MODULE)/e2e%,$(shell go list ./...))
# Packages with tests on the real control plane, behind the build tag e2e.
ON_CLUSTER = ./e2e ./e2e/cluster ./e2e/pages ./e2e/proxy ./e2e/faults ./runtime/sim/rest ./modules/release ./runtime/cluster ./runtime/live ./runtime/watch
# The tests of them that make unit has not run.
NOT_UNIT   = { find e2e -name '*_test.go'; grep -rl --include=*_test.go '^//go:build e2e' modules runtime; } | \
  xargs sed -n 's/^func \(Test[^(]*\)(t .*/\1/p' | paste -sd '|' -
# The race detector sees the packages that start goroutines. Those that import Helm and start none take minutes with it:
# make race does them, make test does not. Packages that start no goroutine have no races, and their random tests take
# ten times as long with the detector. Of the builtins, those of jq start one.
RACED   = $(addprefix $(MODULE)/,runtime/live runtime/executor runtime/drift runtime/dev runtime/sim modules/release)
HELM    = $(filter-out $(MODULE)/e2e% $(RACED),$(shell go list -f '{{range .Deps}}{{if eq . "helm.sh/helm/v3/pkg/engine"}}{{$$.ImportPath}}{{end}}{{end}}' ./...))
SERIAL  = $(filter $(addprefix $(MODULE)/,builtins builtins/crd builtins/data builtins/docs builtins/secrets) $(MODULE)/test $(MODULE)/runtime/engine% $(MODULE)/runtime/reconcile $(MODULE)/runtime/sim/workloads $(MODULE)/modules/values,$(UNIT))

# The server's version, from its go.mod; without it Helm's kubeVersion checks see v0.0.0.
KUBERNETES = $(shell go -C cmd/devcluster list -m -f '{{.Version}}' k8s.io/kubernetes)
VERSION_X  = -X k8s.io/component-base/version
KUBE_LD    = $(VERSION_X).gitVersion=$(KUBERNETES) $(VERSION_X).gitMajor=1 $(VERSION_X).gitMinor=$(word 2,$(subst ., ,$(KUBERNETES)))

# What `starling version` says was built; nothing where git cannot tell.
GIT   = git -c safe.directory='*'
STAMP = $(shell $(GIT) log -1 --abbrev=12 --format='-X main.date=%cI -X main.commit=%h' 2>/dev/null)$(if $(shell $(GIT) status --porcelain 2>/dev/null),+changed)

.NOTPARALLEL:
.PHONY: help clients pictures site run smoke test quick format lint lint-devcluster unit examples race race-e2e helm4 nightly random explore e2e faults chaos soak versions hostile fuzz fuzz-short bench bench-check build devcluster vscode image image-check vuln clean

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' Makefile | while IFS="$$(printf '\t')" read -r t d; do printf '  make %-15s %s\n' "$$t" "$$d"; done

run: build devcluster ## a control plane and Starling on examples/quickstart; Ctrl-C ends both
	@go run ./cmd/demo

smoke: $(if $(STARLING),,build) devcluster ## the same, checked, then stopped; STARLING=file runs that one
	@go run ./cmd/demo --check --starling "$(or $(STARLING),bin/starling)"

ifeq ($(PKG),)
test: lint unit examples e2e ## all checks and tests but those of make nightly; PKG=./modules/release runs those of packages alone
else
test: build devcluster clients
	go vet -tags e2e $(PKG)
	go $(TEST) -tags e2e $(PKG)
endif

# Tests of all that is written, and packages with Go files that differ from the commit SINCE.
CHANGED = $(sort ./test $(patsubst %/,./%,$(dir $(wildcard $(shell { git diff --name-only --relative $(SINCE) -- '*.go'; \
  git ls-files -o --exclude-standard -- '*.go'; } | grep -v -e '^tools/' -e '^cmd/devcluster/')))))

quick: format ## two minutes: go vet, and tests without a cluster, of packages that differ from SINCE (default HEAD)
	go vet -tags e2e $(CHANGED)
	go $(TEST) $(CHANGED)

format:
	@files=$$(gofmt -l .); test -z "$$files" || { echo "gofmt these files:" $$files >&2; exit 1; }

lint: format ## gofmt, go vet and staticcheck
	go vet -tags e2e ./...
	go -C cmd/devcluster vet ./...
	go -C tools vet ./...
	go -C tools/alerts vet ./...
	go -C tools/clients vet ./...
	go -C tools/traces vet ./...
	$(TOOL) staticcheck -tags e2e ./...

lint-devcluster: ## staticcheck of cmd/devcluster; reads all of Kubernetes, which takes a minute and a half the first time
	cd cmd/devcluster && $(TOOL) staticcheck ./...

unit: ## tests that need no cluster; with the race detector where goroutines are
ifneq ($(HAVE_CC),)
	CGO_ENABLED=1 go $(TEST) -race $(filter-out $(HELM) $(SERIAL),$(UNIT))
	CGO_ENABLED=1 go $(TEST) -race -run TestStar/jq ./builtins
	go $(TEST) $(sort $(HELM) $(SERIAL))
else
	@echo "no C compiler: tests run without the race detector"
	go $(TEST) $(UNIT)
endif
	go -C tools $(TEST) ./...
	go -C tools/alerts $(TEST) ./...
	go -C tools/clients $(TEST) .
	go -C tools/traces $(TEST) ./...

examples: build ## the tests of the examples and of the standard library, in a simulated cluster
	bin/starling test -cover ./...
	bin/starling test -explore 20 ./examples/quickstart/... ./examples/secret-copier/... ./examples/per-object/... ./examples/sysctl-tuner/... ./examples/webhooks/... ./examples/application/... ./examples/controllers/... ./examples/from-go/certificate-request/... ./examples/from-go/registry-release/...

race: ## every unit test with the race detector
	CGO_ENABLED=1 go $(TEST) -race $(UNIT)

# A race ends the process with code 66, which no test expects.
race-e2e: devcluster clients ## the tests of e2e and e2e/faults with a starling that looks for races; takes half an hour
	CGO_ENABLED=1 go build -race -o bin/starling-race ./cmd/starling
	GORACE=halt_on_error=1 STARLING_BIN=$(CURDIR)/bin/starling-race go $(TEST) -p 1 -parallel 2 -tags e2e ./e2e ./e2e/faults

# Helm 4 and what it asks for are downloaded for this alone, so .ci/run does without.
helm4: ## charts rendered with Helm 3 and with Helm 4; the differences that are known stand in tools/helm4/testdata
	go -C tools/helm4 vet ./...
	go -C tools/helm4 $(TEST) ./...

nightly: lint-devcluster race race-e2e helm4 hostile bench-check fuzz faults chaos explore ## all that .ci/run has no time for; takes a night

random: build devcluster ## the random tests over SEEDS times their seeds (default 10), the crash tests SEEDS times
	SEEDS=$(SEEDS) go $(TEST) -timeout=2h ./runtime/engine ./modules/values
	go test -count=$(SEEDS) -timeout=2h -tags e2e ./e2e -run 'TestKilled'

explore: build ## every test of a module in ORDERS other orders (default 5000) from SEED on, with failing calls and crashes; takes hours
	bin/starling test -explore $(ORDERS) -seed $(SEED) ./examples/... ./stdlib/... ./e2e/platform/...

# Most of these tests wait for Kubernetes most of the time: eight at once finish sooner, on 2 cores.
e2e: build devcluster clients ## tests on a real control plane
	go -C cmd/devcluster $(TEST) ./test
	@tests="$$($(NOT_UNIT))" && go $(TEST) -p 2 -parallel 4 -tags e2e -run "^($${tests:?no test is found})$$" $(ON_CLUSTER)

faults: build devcluster ## FAULTS rounds (default 10) of each fault of networks and API servers, at random; FAULTS_SEED=n, which it prints, has the same lots drawn again
	FAULTS=$(FAULTS) go $(TEST) -v -timeout=3h -parallel 2 -tags e2e ./e2e/faults
	STARLING_OUTAGE=10m go $(TEST) -v -timeout=1h -tags e2e ./e2e -run '^TestALongOutage$$'

chaos: build devcluster ## CHAOS (default 3m) each of somebody who changes the objects of releases, and 200 parents and their children, while Starling is killed
	DRIFT_CHAOS=$(CHAOS) CONTROLLER_CHAOS=$(CHAOS) go $(TEST) -v -timeout=3h -parallel 1 -tags e2e ./e2e -run '^TestChaosOf(Drift|Controllers)$$'

soak: build devcluster ## SOAK (default 10m) of faults at random on two replicas with fifty modules; FAULTS_SEED as in make faults
	SOAK=$(SOAK) FAULTS=1 go $(TEST) -v -timeout=26h -tags e2e ./e2e/faults -run '^TestSoak$$'

hostile: build devcluster ## attacks on Starling in a memory cgroup, on a real control plane; takes seven minutes
	go $(TEST) -tags e2e ./e2e/hostile

fuzz: ## every fuzz target for FUZZTIME (default 30s); FUZZ=name,name picks some
	@go -C tools run ./fuzz -dir $(CURDIR) -time $(FUZZTIME) -only "$(FUZZ)"

fuzz-short: ## three fuzz targets, 10s each: what people write, and what objects hold
	@go -C tools run ./fuzz -dir $(CURDIR) -time 10s -only FuzzHookFile,FuzzFilter,FuzzPatches

# Its tests are those of today: one that looks for what the older version does not have yet fails.
versions: build devcluster ## the tests of e2e/ with two versions that lead in turn, as in a rollout: OLDER=a commit or tag, RUN=a test
	@test -n "$(OLDER)" || { echo "name the older version: make versions OLDER=<commit or tag>" >&2; exit 1; }
	@rm -rf bin/older.tree && git worktree prune && git worktree add --detach bin/older.tree $(OLDER)
	go build -C bin/older.tree -o $(CURDIR)/bin/older '-ldflags=-s -w' ./cmd/starling
	@git worktree remove --force bin/older.tree
	STARLING_OLDER=$(CURDIR)/bin/older go $(TEST) -parallel 4 -tags e2e ./e2e -run '$(RUN)'

bench: build devcluster ## speed and memory beside a bare client-go loop
	@go run ./bench

# It counts requests and compares times, which only a quiet machine can tell.
bench-check: build devcluster ## each section of make bench once, with small sizes
	go $(TEST) -p 1 -tags e2e ./bench

build: ## bin/starling
	@echo "building bin/starling (the first time: minutes, with a line per package that is compiled)"
	@go build -v -o bin/starling '-ldflags=-s -w $(STAMP)' ./cmd/starling

devcluster: bin/devcluster ## bin/devcluster, a Kubernetes control plane in one process

# kubectl and helm are those of people, of the versions that Starling is built with: a machine needs none.
clients: ## bin/clients: kubectl, helm and a small jq, for tests that run the commands of pages
	@echo "building bin/clients (the first time: a minute or two)"
	@go -C tools/clients build -o $(CURDIR)/bin/clients/ '-ldflags=-s -w' ./kubectl ./jq helm.sh/helm/v3/cmd/helm

image: ## bin/image, the container image as an OCI layout, without Docker; its options: docs/install.md
	@go -C tools run ./image build -dir $(CURDIR) -out $(CURDIR)/bin/image -base "$(BASE)" -platforms "$(PLATFORMS)" \
	  -compression "$(COMPRESSION)" -version "$(VERSION)" -link "$(STAMP)" -modules "$(if $(MODULES),$(abspath $(MODULES)))" -push "$(PUSH)"

# For this machine only: compiling for another one takes minutes more.
image-check: ## builds the image for this machine, looks into it, and runs make smoke with what it holds
	@go -C tools run ./image build -dir $(CURDIR) -out $(CURDIR)/bin/image-check/layout -link "$(STAMP)" -platforms linux/$(shell go env GOARCH)
	@go -C tools run ./image check -layout $(CURDIR)/bin/image-check/layout -platforms linux/$(shell go env GOARCH) -extract $(CURDIR)/bin/image-check/starling
	@$(MAKE) --no-print-directory smoke STARLING=bin/image-check/starling

bin/devcluster: $(filter-out %_test.go,$(wildcard cmd/devcluster/*.go)) cmd/devcluster/go.mod cmd/devcluster/go.sum
	@echo "building $@, Kubernetes $(KUBERNETES) (the first time: some 4 minutes on 2 cores, with a line per package that is compiled)"
	@go -C cmd/devcluster build -v -o $(CURDIR)/$@ '-ldflags=-s -w $(KUBE_LD)' .
	@touch $@

pictures: ## docs/pictures/*.svg of the texts beside them
	@go -C tools run ./pictures -dir $(CURDIR)

vuln: ## known vulnerabilities in what Starling calls; needs VULNDB, by default on the network
	@$(TOOL) govulncheck -db "$(VULNDB)" ./... || { code=$$?; test $$code = 3 || echo "make vuln: not finished, see above; it needs the vulnerability database at $(VULNDB): without network set VULNDB to a mirror or to file:///DIR with a copy" >&2; exit $$code; }

clean: ## remove what was built here
	rm -rf bin .cache

vscode: ## bin/starling.vsix, the extension for VS Code; needs Node 20 and npm
	@mkdir -p bin
	@cd editors/vscode && { test -d node_modules || npm ci --no-audit --no-fund; } && npm run --silent package

site: ## docs/ as a static site with search, in bin/site; needs Node 20 and npm
	@cd tools/site && { test -d node_modules || npm ci --no-audit --no-fund; } && SITE=$(CURDIR)/bin/site npm run --silent build
