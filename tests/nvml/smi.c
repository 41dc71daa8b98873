/* What a process per query costs at the very least: one look at every GPU, as `nvidia-smi --query-gpu` takes it, without its formatting.
 * For the benchmark; linked to whatever libnvidia-ml.so.1 is found at run time. */
#include <dlfcn.h>
#include <stdio.h>

typedef int (*Any)();

int main(void) {
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!library) return 1;
#define ASK(name) ((Any)dlsym(library, name))
    unsigned count = 0;
    if (ASK("nvmlInit_v2")()) return 1;
    ASK("nvmlDeviceGetCount_v2")(&count);
    for (unsigned index = 0; index < count; index++) {
        void *gpu = NULL;
        char uuid[96], name[96];
        unsigned busy[2], power, clock, generation, width;
        unsigned long long memory[3], reasons;
        ASK("nvmlDeviceGetHandleByIndex_v2")(index, &gpu);
        ASK("nvmlDeviceGetUUID")(gpu, uuid, 96u);
        ASK("nvmlDeviceGetName")(gpu, name, 96u);
        ASK("nvmlDeviceGetUtilizationRates")(gpu, busy);
        ASK("nvmlDeviceGetMemoryInfo")(gpu, memory);
        ASK("nvmlDeviceGetPowerUsage")(gpu, &power);
        ASK("nvmlDeviceGetClockInfo")(gpu, 1u, &clock);
        ASK("nvmlDeviceGetCurrentClocksThrottleReasons")(gpu, &reasons);
        ASK("nvmlDeviceGetCurrPcieLinkGeneration")(gpu, &generation);
        ASK("nvmlDeviceGetCurrPcieLinkWidth")(gpu, &width);
        printf("%s, %s, %u, %llu, %u, %u, %llx, %u, %u\n", uuid, name, busy[0], memory[2], power, clock, reasons, generation, width);
    }
    return ASK("nvmlShutdown")();
}
