/* A libnvidia-ml.so.1 without a GPU behind it, for the tests: it answers what a script says.
 *
 * The file named by NVML_STUB_SCRIPT holds one statement a line; # starts a comment. Without one: eight idle GPUs.
 *
 *   driver 550.54.15 | cuda 12040 | gpus 8         what the system says
 *   init 9 | init hang                             nvmlInit fails with this code, or never returns
 *   base 1700000000000000                          what the driver's clock reads (us) when the library is loaded
 *   nvlink A B 18 | switch A 18                    links between two GPUs, or from one to a switch
 *   ancestor A B 50                                nearest common point on PCIe (nvmlGpuTopologyLevel_t)
 *   gpu N|* KEY VALUE                              one GPU, or all of them; KEYs of text and number below
 *   gpu N|* at SECONDS KEY VALUE                   the same from that time on, for readings
 *   gpu N|* error FUNCTION CODE                    that function (no _v2 and the like) fails with this code
 *   gpu N|* mig SLOT GI CI MIB UUID NAME           one MIG instance
 *
 * Text: name, uuid, bus. Numbers: total_mib, capability (90), sample_us, buffer, gpm (0|1), mig_mode, max_gen, max_width, limit_mw,
 * max_mhz, lost (the second at which it falls off the bus). Readings: util, used_mib, power_mw, mhz, reasons, gen, width, tx_kb, rx_kb,
 * dry (1: nothing enters the buffer of samples), gpm_sm, gpm_occupancy, gpm_tensor, gpm_tx_mib, gpm_rx_mib, and processes (PID:MIB,PID:MIB or none).
 *
 * Time is CLOCK_MONOTONIC from the first call, or what shardlab_stub_set_us() last said. STUB_API is the driver branch whose
 * functions exist: 570 has all, 470 has no GPM and no clocks-event names, 300 has no nvmlInitWithFlags.
 */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef STUB_API
#define STUB_API 570
#endif

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, LOST = 15 };
enum { GPUS = 16, POINTS = 64, SLOTS = 7, FAULTS = 16, TEXT = 96, LINKS = 18, PROCESSES = 16 };

static const char *const READINGS[] = {"util", "used_mib", "power_mw", "mhz", "reasons", "gen", "width", "tx_kb", "rx_kb", "dry",
                                       "gpm_sm", "gpm_occupancy", "gpm_tensor", "gpm_tx_mib", "gpm_rx_mib", "processes"};
enum { UTIL, USED, POWER, MHZ, REASONS, GEN, WIDTH, TX, RX, DRY, GPM_SM, GPM_OCCUPANCY, GPM_TENSOR, GPM_TX, GPM_RX, PROCESS_LIST, READING_COUNT };
static const char *const NUMBERS[] = {"total_mib", "capability", "sample_us", "buffer", "gpm", "mig_mode", "max_gen", "max_width",
                                      "limit_mw", "max_mhz"};
enum { TOTAL, CAPABILITY, SAMPLE_US, BUFFER, GPM, MIG_MODE, MAX_GEN, MAX_WIDTH, LIMIT, MAX_MHZ, NUMBER_COUNT };

typedef struct { uint64_t at_us; double value; char text[TEXT]; } Point;
typedef struct { int count; Point points[POINTS]; } Series;
typedef struct { char function[TEXT]; int code; } Fault;
typedef struct Gpu Gpu;
typedef struct { Gpu *gpu; int slot; } Device;
typedef struct { bool there; unsigned gi, ci; uint64_t mib; char uuid[TEXT], name[TEXT]; Device device; } Mig;
struct Gpu {
    Device device;
    int index;
    char name[TEXT], uuid[TEXT], bus[TEXT];
    double numbers[NUMBER_COUNT];
    uint64_t lost_us;
    Series readings[READING_COUNT];
    Mig migs[SLOTS];
    int fault_count;
    Fault faults[FAULTS];
    int links[GPUS + 1], ancestors[GPUS]; /* the last of links is the switch */
};
typedef struct { uint64_t at_us; Gpu *gpu; int slot; } GpmSample;

static Gpu gpus[GPUS];
static int gpu_count = 8, init_code, cuda_version = 12040;
static char driver[TEXT] = "550.54.15";
static uint64_t base_us = 1700000000000000ull, started_us, set_us;
static bool ready, hang, by_hand;

static uint64_t monotonic_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

static uint64_t now_us(void) { return by_hand ? set_us : monotonic_us() - started_us; }

void shardlab_stub_set_us(uint64_t us) { by_hand = true; set_us = us; }

static void wrong(const char *line) {
    fprintf(stderr, "stub: cannot read the line: %s\n", line);
    _exit(99);
}

static int find(const char *const *names, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (!strcmp(names[i], name)) return i;
    return -1;
}

static void put(Series *series, uint64_t at_us, const char *text) {
    int i = series->count;
    while (i > 0 && series->points[i - 1].at_us >= at_us) i--;
    if (i == series->count || series->points[i].at_us != at_us) {
        if (series->count == POINTS) wrong(text);
        memmove(&series->points[i + 1], &series->points[i], sizeof(Point) * (size_t)(series->count - i));
        series->count++;
    }
    series->points[i].at_us = at_us;
    series->points[i].value = strtod(text, NULL);
    if (!strncmp(text, "0x", 2)) series->points[i].value = (double)strtoull(text, NULL, 16);
    snprintf(series->points[i].text, TEXT, "%s", text);
}

static const Point *point_at(const Gpu *gpu, int reading, uint64_t at_us) {
    const Series *series = &gpu->readings[reading];
    int i = series->count - 1;
    while (i > 0 && series->points[i].at_us > at_us) i--;
    return &series->points[i];
}

static double value_at(const Gpu *gpu, int reading, uint64_t at_us) { return point_at(gpu, reading, at_us)->value; }

/* The mean over (from, until]: what a driver that integrates would report. */
static double mean(const Gpu *gpu, int reading, uint64_t from_us, uint64_t until_us) {
    if (until_us <= from_us) return value_at(gpu, reading, until_us);
    double sum = 0;
    uint64_t at_us = from_us;
    while (at_us < until_us) {
        uint64_t next_us = until_us;
        const Series *series = &gpu->readings[reading];
        for (int i = 0; i < series->count; i++)
            if (series->points[i].at_us > at_us && series->points[i].at_us < next_us) next_us = series->points[i].at_us;
        sum += value_at(gpu, reading, at_us) * (double)(next_us - at_us);
        at_us = next_us;
    }
    return sum / (double)(until_us - from_us);
}

static void set_gpu(Gpu *gpu, const char *line, char *rest) {
    char key[TEXT], text[TEXT] = "";
    double at_s = 0;
    int used = 0, slot = 0, code = 0, number;
    if (sscanf(rest, "at %lf %n", &at_s, &used) == 1) rest += used;
    if (sscanf(rest, "%95s %n", key, &used) != 1) wrong(line);
    rest += used;
    snprintf(text, TEXT, "%s", rest);
    if ((number = find(READINGS, READING_COUNT, key)) >= 0) put(&gpu->readings[number], (uint64_t)(at_s * 1e6 + 0.5), text);
    else if ((number = find(NUMBERS, NUMBER_COUNT, key)) >= 0) gpu->numbers[number] = strtod(text, NULL);
    else if (!strcmp(key, "lost")) gpu->lost_us = (uint64_t)(strtod(text, NULL) * 1e6 + 0.5);
    else if (!strcmp(key, "name")) memcpy(gpu->name, text, TEXT);
    else if (!strcmp(key, "uuid")) memcpy(gpu->uuid, text, TEXT);
    else if (!strcmp(key, "bus")) memcpy(gpu->bus, text, TEXT);
    else if (!strcmp(key, "error") && gpu->fault_count < FAULTS && sscanf(rest, "%95s %d", text, &code) == 2) {
        Fault *fault = &gpu->faults[gpu->fault_count++];
        memcpy(fault->function, text, TEXT);
        fault->code = code;
    } else if (!strcmp(key, "mig") && sscanf(rest, "%d", &slot) == 1 && slot >= 0 && slot < SLOTS) {
        Mig *mig = &gpu->migs[slot];
        unsigned long long mib = 0;
        if (sscanf(rest, "%d %u %u %llu %95s %95[^\n]", &slot, &mig->gi, &mig->ci, &mib, mig->uuid, mig->name) != 6) wrong(line);
        mig->there = true;
        mig->mib = mib;
        mig->device = (Device){gpu, slot};
    } else wrong(line);
}

static void read_line(char *line) {
    char which[TEXT], text[TEXT];
    int a = 0, b = 0, n = 0, used = 0;
    char *comment = strchr(line, '#');
    if (comment) *comment = 0;
    for (char *end = line + strlen(line); end > line && (end[-1] == '\n' || end[-1] == ' '); end--) end[-1] = 0;
    if (!*line) return;
    if (sscanf(line, "driver %95s", driver) == 1 || sscanf(line, "cuda %d", &cuda_version) == 1) return;
    if (sscanf(line, "base %95s", text) == 1) { base_us = strtoull(text, NULL, 10); return; }
    if (sscanf(line, "gpus %d", &n) == 1 && n >= 0 && n <= GPUS) { gpu_count = n; return; }
    if (!strcmp(line, "init hang")) { hang = true; return; }
    if (sscanf(line, "init %d", &init_code) == 1) return;
    if (sscanf(line, "nvlink %d %d %d", &a, &b, &n) == 3 && a < GPUS && b < GPUS) { gpus[a].links[b] = gpus[b].links[a] = n; return; }
    if (sscanf(line, "switch %d %d", &a, &n) == 2 && a < GPUS) { gpus[a].links[GPUS] = n; return; }
    if (sscanf(line, "ancestor %d %d %d", &a, &b, &n) == 3 && a < GPUS && b < GPUS) { gpus[a].ancestors[b] = gpus[b].ancestors[a] = n; return; }
    if (sscanf(line, "gpu %95s %n", which, &used) != 1) wrong(line);
    bool all = !strcmp(which, "*");
    int chosen = all ? -1 : atoi(which);
    if (!all && (chosen < 0 || chosen >= GPUS)) wrong(line);
    for (int i = 0; i < GPUS; i++)
        if (all || i == chosen) set_gpu(&gpus[i], line, line + used);
}

static void load(void) {
    static const double numbers[] = {81559, 90, 100000, 120, 1, 0, 5, 16, 700000, 1980};
    static const char *const readings[] = {"0", "600", "70000", "345", "0x1", "5", "16", "0", "0", "0", "0", "0", "0", "0", "0", "none"};
    if (ready) return;
    ready = true;
    started_us = monotonic_us();
    for (int i = 0; i < GPUS; i++) {
        Gpu *gpu = &gpus[i];
        gpu->device = (Device){gpu, -1};
        gpu->index = i;
        snprintf(gpu->name, TEXT, "NVIDIA H100 80GB HBM3");
        snprintf(gpu->uuid, TEXT, "GPU-%x%07x-0000-4000-8000-00000000000%x", i + 1, 0xabc0000 + i, i);
        snprintf(gpu->bus, TEXT, "00000000:%02X:00.0", 0x10 + 8 * i);
        memcpy(gpu->numbers, numbers, sizeof numbers);
        for (int k = 0; k < READING_COUNT; k++) put(&gpu->readings[k], 0, readings[k]);
        for (int other = 0; other < GPUS; other++) gpu->ancestors[other] = 50;
    }
    const char *path = getenv("NVML_STUB_SCRIPT");
    FILE *script = path ? fopen(path, "r") : NULL;
    if (path && !script) wrong(path);
    char line[512];
    while (script && fgets(line, sizeof line, script)) read_line(line);
    if (script) fclose(script);
}

/* What every question about a device starts with: the error to return, or OK. */
static int asked(const Device *device, const char *function) {
    if (!device || !device->gpu) return INVALID;
    const Gpu *gpu = device->gpu;
    if (gpu->lost_us && now_us() >= gpu->lost_us) return LOST;
    for (int i = 0; i < gpu->fault_count; i++)
        if (!strcmp(gpu->faults[i].function, function)) return gpu->faults[i].code;
    return OK;
}

#define ASK(function) do { int code_ = asked(device, function); if (code_) return code_; } while (0)
#define WHOLE if (device->slot >= 0) return NOT_SUPPORTED

static int copy(const char *text, char *out, unsigned size) {
    if (strlen(text) >= size) return TOO_SMALL;
    strcpy(out, text);
    return OK;
}

static int start(void) {
    load();
    if (hang) pause();
    return init_code;
}

#if STUB_API >= 340
int nvmlInitWithFlags(unsigned flags) { (void)flags; return start(); }
#endif
int nvmlInit_v2(void) { return start(); }
int nvmlShutdown(void) { return OK; }

const char *nvmlErrorString(int code) {
    switch (code) {
    case OK: return "Success";
    case NOT_SUPPORTED: return "Not Supported";
    case 4: return "Insufficient Permissions";
    case 9: return "Driver Not Loaded";
    case LOST: return "GPU is lost";
    case 18: return "Driver/library version mismatch";
    default: return "Unknown Error";
    }
}

int nvmlSystemGetDriverVersion(char *out, unsigned size) { return copy(driver, out, size); }
int nvmlSystemGetNVMLVersion(char *out, unsigned size) { return copy("12.550.54.15", out, size); }
int nvmlSystemGetCudaDriverVersion_v2(int *out) { *out = cuda_version; return OK; }
int nvmlDeviceGetCount_v2(unsigned *out) { *out = (unsigned)gpu_count; return OK; }

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **out) {
    if ((int)index >= gpu_count) return INVALID;
    Device *device = &gpus[index].device;
    ASK("nvmlDeviceGetHandleByIndex");
    *out = device;
    return OK;
}

int nvmlDeviceGetName(Device *device, char *out, unsigned size) {
    ASK("nvmlDeviceGetName");
    return copy(device->slot < 0 ? device->gpu->name : device->gpu->migs[device->slot].name, out, size);
}

int nvmlDeviceGetUUID(Device *device, char *out, unsigned size) {
    ASK("nvmlDeviceGetUUID");
    return copy(device->slot < 0 ? device->gpu->uuid : device->gpu->migs[device->slot].uuid, out, size);
}

typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; } Pci;

static void fill(Pci *out, const char *bus) {
    memset(out, 0, sizeof *out);
    snprintf(out->bus_id, sizeof out->bus_id, "%.31s", bus);
    sscanf(bus, "%x:%x:%x", &out->domain, &out->bus, &out->device);
}

int nvmlDeviceGetPciInfo_v3(Device *device, Pci *out) {
    ASK("nvmlDeviceGetPciInfo");
    fill(out, device->gpu->bus);
    return OK;
}

int nvmlDeviceGetCudaComputeCapability(Device *device, int *major, int *minor) {
    ASK("nvmlDeviceGetCudaComputeCapability");
    *major = (int)device->gpu->numbers[CAPABILITY] / 10;
    *minor = (int)device->gpu->numbers[CAPABILITY] % 10;
    return OK;
}

typedef struct { unsigned long long total, free, used; } Memory;

int nvmlDeviceGetMemoryInfo(Device *device, Memory *out) {
    ASK("nvmlDeviceGetMemoryInfo");
    uint64_t mib = device->slot < 0 ? (uint64_t)device->gpu->numbers[TOTAL] : device->gpu->migs[device->slot].mib;
    out->total = mib << 20;
    out->used = (uint64_t)value_at(device->gpu, USED, now_us()) << 20;
    out->free = out->total - out->used;
    return OK;
}

int nvmlDeviceGetUtilizationRates(Device *device, unsigned *out) {
    ASK("nvmlDeviceGetUtilizationRates");
    WHOLE;
    out[0] = (unsigned)value_at(device->gpu, UTIL, now_us());
    out[1] = 0;
    return OK;
}

typedef struct { unsigned long long at_us; union { double d; unsigned ui; unsigned long long ull; } value; } Sample;

int nvmlDeviceGetSamples(Device *device, unsigned kind, unsigned long long seen_us, unsigned *value_kind, unsigned *count, Sample *out) {
    ASK("nvmlDeviceGetSamples");
    WHOLE;
    if (kind != 1) return NOT_SUPPORTED;
    Gpu *gpu = device->gpu;
    uint64_t step_us = (uint64_t)gpu->numbers[SAMPLE_US], last = now_us() / step_us, kept = (uint64_t)gpu->numbers[BUFFER];
    *value_kind = 1;
    if (!out) { *count = (unsigned)kept; return OK; } /* as the driver does: the size of the whole buffer */
    unsigned found = 0;
    for (uint64_t number = last > kept ? last - kept + 1 : 1; number <= last && found < *count; number++) {
        uint64_t at_us = number * step_us;
        if (base_us + at_us <= seen_us || value_at(gpu, DRY, at_us)) continue;
        out[found].at_us = base_us + at_us;
        out[found].value.ull = 0;
        out[found++].value.ui = (unsigned)(mean(gpu, UTIL, at_us - step_us, at_us) + 0.5);
    }
    *count = found;
    return found ? OK : NOT_FOUND;
}

static int number(Device *device, const char *function, double value, unsigned *out) {
    ASK(function);
    WHOLE;
    *out = (unsigned)value;
    return OK;
}

#define NOW(reading) (device && device->gpu ? value_at(device->gpu, reading, now_us()) : 0)
#define FIXED(which) (device && device->gpu ? device->gpu->numbers[which] : 0)

int nvmlDeviceGetPowerUsage(Device *device, unsigned *out) { return number(device, "nvmlDeviceGetPowerUsage", NOW(POWER), out); }
int nvmlDeviceGetEnforcedPowerLimit(Device *device, unsigned *out) { return number(device, "nvmlDeviceGetEnforcedPowerLimit", FIXED(LIMIT), out); }
int nvmlDeviceGetCurrPcieLinkGeneration(Device *device, unsigned *out) { return number(device, "nvmlDeviceGetCurrPcieLinkGeneration", NOW(GEN), out); }
int nvmlDeviceGetCurrPcieLinkWidth(Device *device, unsigned *out) { return number(device, "nvmlDeviceGetCurrPcieLinkWidth", NOW(WIDTH), out); }
int nvmlDeviceGetMaxPcieLinkGeneration(Device *device, unsigned *out) { return number(device, "nvmlDeviceGetMaxPcieLinkGeneration", FIXED(MAX_GEN), out); }
int nvmlDeviceGetMaxPcieLinkWidth(Device *device, unsigned *out) { return number(device, "nvmlDeviceGetMaxPcieLinkWidth", FIXED(MAX_WIDTH), out); }

int nvmlDeviceGetClockInfo(Device *device, unsigned kind, unsigned *out) {
    if (kind > 3) return INVALID;
    return number(device, "nvmlDeviceGetClockInfo", NOW(MHZ), out);
}

int nvmlDeviceGetMaxClockInfo(Device *device, unsigned kind, unsigned *out) {
    if (kind > 3) return INVALID;
    return number(device, "nvmlDeviceGetMaxClockInfo", FIXED(MAX_MHZ), out);
}

int nvmlDeviceGetPcieThroughput(Device *device, unsigned counter, unsigned *out) {
    if (!by_hand) usleep(20000); /* as the driver does: it counts for 20 ms */
    return number(device, "nvmlDeviceGetPcieThroughput", counter ? NOW(RX) : NOW(TX), out);
}

static int reasons(Device *device, const char *function, unsigned long long *out) {
    ASK(function);
    WHOLE;
    *out = (unsigned long long)value_at(device->gpu, REASONS, now_us());
    return OK;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(Device *device, unsigned long long *out) {
    return reasons(device, "nvmlDeviceGetCurrentClocksThrottleReasons", out);
}

#if STUB_API >= 535
int nvmlDeviceGetCurrentClocksEventReasons(Device *device, unsigned long long *out) {
    return reasons(device, "nvmlDeviceGetCurrentClocksEventReasons", out);
}
#endif

typedef struct { unsigned pid; unsigned long long used; unsigned gi, ci; } Process;

int nvmlDeviceGetComputeRunningProcesses_v2(Device *device, unsigned *count, Process *out) {
    ASK("nvmlDeviceGetComputeRunningProcesses");
    Process found[PROCESSES];
    unsigned n = 0;
    const char *text = point_at(device->gpu, PROCESS_LIST, now_us())->text;
    unsigned pid;
    unsigned long long mib;
    while (n < PROCESSES && sscanf(text, "%u:%llu", &pid, &mib) == 2) {
        found[n++] = (Process){pid, mib << 20, 0xffffffffu, 0xffffffffu};
        const char *comma = strchr(text, ',');
        if (!comma) break;
        text = comma + 1;
    }
    bool fits = *count >= n && out;
    *count = n;
    if (!n) return OK;
    if (!fits) return TOO_SMALL;
    memcpy(out, found, sizeof(Process) * n);
    return OK;
}

#if STUB_API >= 510
int nvmlDeviceGetComputeRunningProcesses_v3(Device *device, unsigned *count, Process *out) {
    return nvmlDeviceGetComputeRunningProcesses_v2(device, count, out);
}
#endif

int nvmlDeviceGetTopologyCommonAncestor(Device *device, Device *other, unsigned *out) {
    ASK("nvmlDeviceGetTopologyCommonAncestor");
    *out = (unsigned)device->gpu->ancestors[other->gpu->index];
    return OK;
}

static bool switched(const Gpu *gpu) { return gpu->links[GPUS] > 0; }

int nvmlDeviceGetP2PStatus(Device *device, Device *other, unsigned kind, unsigned *out) {
    ASK("nvmlDeviceGetP2PStatus");
    bool linked = device->gpu->links[other->gpu->index] > 0 || (switched(device->gpu) && switched(other->gpu));
    *out = kind == 2 && !linked ? 5 : 0;
    return OK;
}

/* The far end of a link: a GPU's index, GPUS for a switch, -1 for none. */
static int far_end(const Gpu *gpu, unsigned link) {
    int left = (int)link;
    for (int other = 0; other <= GPUS; other++) {
        if (left < gpu->links[other]) return other;
        left -= gpu->links[other];
    }
    return -1;
}

int nvmlDeviceGetNvLinkState(Device *device, unsigned link, unsigned *out) {
    ASK("nvmlDeviceGetNvLinkState");
    if (link >= LINKS) return INVALID;
    *out = far_end(device->gpu, link) >= 0;
    return OK;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(Device *device, unsigned link, unsigned *out) {
    ASK("nvmlDeviceGetNvLinkRemoteDeviceType");
    *out = far_end(device->gpu, link) == GPUS ? 2 : 0;
    return OK;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(Device *device, unsigned link, Pci *out) {
    ASK("nvmlDeviceGetNvLinkRemotePciInfo");
    int end = far_end(device->gpu, link);
    if (end < 0) return NOT_FOUND;
    fill(out, end == GPUS ? "00000000:C0:00.0" : gpus[end].bus);
    return OK;
}

int nvmlDeviceGetMigMode(Device *device, unsigned *current, unsigned *pending) {
    ASK("nvmlDeviceGetMigMode");
    WHOLE;
    if (device->gpu->numbers[CAPABILITY] < 80) return NOT_SUPPORTED;
    *current = *pending = (unsigned)device->gpu->numbers[MIG_MODE];
    return OK;
}

int nvmlDeviceGetMaxMigDeviceCount(Device *device, unsigned *out) {
    ASK("nvmlDeviceGetMaxMigDeviceCount");
    *out = SLOTS;
    return OK;
}

int nvmlDeviceGetMigDeviceHandleByIndex(Device *device, unsigned index, Device **out) {
    ASK("nvmlDeviceGetMigDeviceHandleByIndex");
    if (index >= SLOTS || !device->gpu->migs[index].there) return NOT_FOUND;
    *out = &device->gpu->migs[index].device;
    return OK;
}

int nvmlDeviceGetGpuInstanceId(Device *device, unsigned *out) {
    ASK("nvmlDeviceGetGpuInstanceId");
    if (device->slot < 0) return NOT_SUPPORTED;
    *out = device->gpu->migs[device->slot].gi;
    return OK;
}

int nvmlDeviceGetComputeInstanceId(Device *device, unsigned *out) {
    ASK("nvmlDeviceGetComputeInstanceId");
    if (device->slot < 0) return NOT_SUPPORTED;
    *out = device->gpu->migs[device->slot].ci;
    return OK;
}

#if STUB_API >= 525
typedef struct { unsigned version, supported; } GpmSupport;
typedef struct { unsigned id; int code; double value; const char *names[3]; } GpmMetric;
typedef struct { unsigned version, count; GpmSample *first, *second; GpmMetric metrics[]; } GpmRequest;

int nvmlGpmQueryDeviceSupport(Device *device, GpmSupport *out) {
    ASK("nvmlGpmQueryDeviceSupport");
    out->supported = device->gpu->numbers[CAPABILITY] >= 90 && device->gpu->numbers[GPM] > 0;
    return OK;
}

int nvmlGpmSampleAlloc(GpmSample **out) { return (*out = calloc(1, sizeof **out)) ? OK : 20; }
int nvmlGpmSampleFree(GpmSample *sample) { free(sample); return OK; }

static int take(Device *device, int slot, GpmSample *out) {
    ASK("nvmlGpmSampleGet");
    if (device->gpu->numbers[CAPABILITY] < 90) return NOT_SUPPORTED;
    *out = (GpmSample){now_us(), device->gpu, slot};
    return OK;
}

int nvmlGpmSampleGet(Device *device, GpmSample *out) {
    if (device->gpu->numbers[MIG_MODE]) return NOT_SUPPORTED;
    return take(device, -1, out);
}

int nvmlGpmMigSampleGet(Device *device, unsigned instance, GpmSample *out) { return take(device, (int)instance, out); }

int nvmlGpmMetricsGet(GpmRequest *request) {
    if (request->version != 1 || !request->first || !request->second || request->first->gpu != request->second->gpu) return INVALID;
    const Gpu *gpu = request->first->gpu;
    for (unsigned i = 0; i < request->count; i++) {
        GpmMetric *metric = &request->metrics[i];
        int reading = metric->id == 2 ? GPM_SM : metric->id == 3 ? GPM_OCCUPANCY : metric->id == 5 ? GPM_TENSOR
                    : metric->id == 20 ? GPM_TX : metric->id == 21 ? GPM_RX : -1;
        metric->code = reading < 0 ? NOT_SUPPORTED : OK;
        metric->value = reading < 0 ? 0 : mean(gpu, reading, request->first->at_us, request->second->at_us);
    }
    return OK;
}
#endif
