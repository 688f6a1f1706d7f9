/** Whether kernels run on a GPU of another kind than Metal's, by the name that the environment gives. */
export const isOtherGpu = !["cpu", "0", undefined].includes(process.env["SOFTMETAL_DEVICE"]);
